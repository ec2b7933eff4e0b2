#version 450
layout(local_size_x = 1) in;
layout(push_constant) uniform Push { vec4 words[64]; };
layout(set = 0, binding = 0) buffer Out { vec4 result; };
void main() { result = words[63]; }
