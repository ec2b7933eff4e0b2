// Several exits and several continues.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint s = 0, i = 0;
    while (true) {
        i++;
        uint v = x[(id() * 17u + i) & 4095u];
        if ((v & 3u) == 0u) continue;
        if (i > n * 8u) break;
        s += v;
        if ((v & 1023u) == 5u) break;
        for (uint j = 0; j < 9u; j++) {
            if (j == (v & 15u)) break;
            if ((j & 1u) == 1u) continue;
            s ^= j << (v & 7u);
        }
    }
    put(s + i);
}
