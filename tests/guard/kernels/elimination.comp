// Gauss in shared memory, one row an invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 16) in;
#include "common.glsl"
shared float g[16][17];
void main() {
    uint l = gl_LocalInvocationID.x;
    for (uint c = 0; c < 17u; c++) g[l][c] = f(id() * 17u + c) + (c == l ? 40.0 : 0.0);
    barrier();
    for (uint p = 0; p < 16u; p++) {
        float q = g[l][p] / g[p][p];
        barrier();
        if (l != p) for (uint c = p; c < 17u; c++) g[l][c] -= q * g[p][c];
        barrier();
    }
    put(g[l][16] / g[l][l]);
}
