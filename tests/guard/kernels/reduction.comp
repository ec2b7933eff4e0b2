// A tree in shared memory.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
shared float part[32];
void main() {
    uint l = gl_LocalInvocationID.x;
    float s = 0.0;
    for (uint i = id(); i < 4096u; i += 256u) s += f(i);
    part[l] = s;
    barrier();
    for (uint d = 16u; d > 0u; d >>= 1) {
        if (l < d) part[l] += part[l + d];
        barrier();
    }
    if (l == 0u) put(part[0]); else put(part[l]);
}
