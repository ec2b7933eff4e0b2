#version 450
layout(local_size_x = 1) in;
layout(push_constant) uniform Push { uint ignored; } push;
layout(set = 0, binding = 0) writeonly buffer Out { uint result[]; };
void main() { result[0] = 5; }
