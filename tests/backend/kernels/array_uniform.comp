#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Out { uint value; };
layout(set = 0, binding = 1) uniform Factor { uvec4 factor; } factors[2];
void main() { value = factors[gl_WorkGroupID.x].factor.x; }
