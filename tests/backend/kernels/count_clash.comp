#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer S { uint s[]; } two[2];
layout(set = 0, binding = 0) readonly buffer T { uint t[]; } three[3];
layout(set = 0, binding = 1) buffer Out { uint result; };
void main() { result = two[1].s[0] + three[2].t[0]; }
