// CORRECT: each invocation adds up a part of its own, behind all that is before
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) buffer Y { int y[]; };
layout(push_constant) uniform Push { uint n; };
shared int s[256];
void main() {
    uint me = gl_LocalInvocationIndex, part = (n + 255) / 256;
    int sum = 0;
    for (uint i = me * part; i < min(n, (me + 1) * part); i++)
        sum += x[i];
    s[me] = sum;
    barrier();
    sum = 0;
    for (uint i = 0; i < me; i++)
        sum += s[i];
    for (uint i = me * part; i < min(n, (me + 1) * part); i++) {
        sum += x[i];
        y[i] = sum;
    }
}
