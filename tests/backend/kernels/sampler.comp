#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 6) uniform sampler2D lookup;
layout(set = 0, binding = 0) buffer Out { float result[]; };
void main() { result[0] = texelFetch(lookup, ivec2(0), 0).x; }
