// WRONG: each invocation adds itself to all that follow, without atomics
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) buffer Y { int y[]; };
layout(push_constant) uniform Push { uint n; };
void main() {
    uint me = gl_LocalInvocationIndex;
    for (uint i = me; i < n; i += 256)
        y[i] = 0;
    barrier();
    for (uint i = me; i < n; i += 256)
        for (uint j = i; j < min(n, i + 1000); j++)
            y[j] += x[i];
}
