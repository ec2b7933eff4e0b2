#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const uint N = 2;
layout(set = 0, binding = 0) buffer Data { uint value; } data[N];
layout(set = 0, binding = 1) uniform Factor { uvec4 factor; } factors[2];
void main() { data[0].value = data[1].value * factors[1].factor.x + factors[0].factor.y; }
