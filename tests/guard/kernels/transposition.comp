// Shared memory read across, padded.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
shared uint t[32][33];
void main() {
    uint l = gl_LocalInvocationID.x;
    for (uint i = 0; i < 32u; i++) t[i][l] = x[(i * 32u + l + gl_WorkGroupID.x * 7u) & 4095u];
    barrier();
    barrier();
    uint s = 0;
    for (uint i = 0; i < 32u; i++) s = s * 17u + t[l][i];
    put(s);
}
