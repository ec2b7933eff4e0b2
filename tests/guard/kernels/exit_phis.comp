// Values that leave a loop through several exits.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint i, v = 0, w = seed, kind = 0;
    for (i = 0; i < n; i++) {
        v = x[(id() + i * 3u) & 4095u];
        if ((v & 127u) == 9u) { kind = 1u; w += v; break; }
        if ((v & 127u) == 10u) { kind = 2u; w = i; break; }
        w = w * 5u + v;
        if (w > 0xf0000000u) { kind = 3u; break; }
    }
    uint j = i;
    while (j > 0u) { if ((w & j) == 0u) { v += j; break; } j--; w >>= 1; }
    put(v + w * 3u + i * 7u + j * 11u + kind);
}
