// Atomics in shared memory and in a buffer.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
shared uint bins[64];
void main() {
    uint l = gl_LocalInvocationID.x;
    for (uint i = l; i < 64u; i += 32u) bins[i] = 0u;
    barrier();
    for (uint i = id(); i < 4096u; i += 256u) atomicAdd(bins[x[i] & 63u], 1u);
    barrier();
    for (uint i = l; i < 64u; i += 32u) atomicAdd(y[i], bins[i]);
}
