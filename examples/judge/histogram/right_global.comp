// CORRECT: counts in the output, which it sets to zero
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer H { uint h[]; };
layout(push_constant) uniform Push { uint n, shift; };
void main() {
    uint me = gl_LocalInvocationIndex;
    h[me] = 0;
    memoryBarrierBuffer();
    barrier();
    for (uint i = me; i < n; i += 256)
        atomicAdd(h[(x[i] + shift) % 256], 1);
}
