#version 450
// Two views of each binding, of which neither has what the other needs.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer R { uint r[]; };
layout(set = 0, binding = 0) writeonly buffer W { uint w[]; };
layout(set = 0, binding = 1, std140) uniform A { vec4 a; };
layout(set = 0, binding = 1, std140) uniform B { vec4 b[3]; };
layout(set = 0, binding = 2, std140) uniform C { vec4 c[3]; };
layout(set = 0, binding = 2, std140) uniform D { vec4 d; };
layout(set = 0, binding = 3) writeonly buffer X { uint x[]; };
layout(set = 0, binding = 3) readonly buffer S { uint s[]; };
void main() {
    uint first = s[1];
    x[0] = first;
    w[0] = r[1] + uint(a.x + b[2].x + c[2].x + d.x);
}
