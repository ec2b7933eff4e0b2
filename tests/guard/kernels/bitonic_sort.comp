// Nested power-of-two loops with barriers and swaps.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
shared uint s[64];
void main() {
    uint l = gl_LocalInvocationID.x;
    s[l] = x[(id() * 2u) & 4095u];
    s[l + 32u] = x[(id() * 2u + 1u) & 4095u];
    barrier();
    for (uint k = 2u; k <= 64u; k <<= 1)
        for (uint j = k >> 1; j > 0u; j >>= 1) {
            uint i = 2u * l - (l & (j - 1u)), p = i + j;
            bool up = (i & k) == 0u;
            if ((s[i] > s[p]) == up) { uint t = s[i]; s[i] = s[p]; s[p] = t; }
            barrier();
        }
    put(s[l] ^ (s[l + 32u] * 3u));
}
