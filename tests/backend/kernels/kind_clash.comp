#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) uniform U { uint u; };
layout(set = 0, binding = 0) buffer S { uint s; };
void main() { s = u; }
