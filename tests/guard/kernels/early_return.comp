// Returns out of nested loops.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    if ((id() & 7u) == 3u) return;
    for (uint i = 0; i < n; i++) {
        for (uint j = 0; j < m; j++) {
            uint v = x[(i * m + j + id()) & 4095u];
            if ((v & 255u) == 17u) { put(i * 1000u + j); return; }
        }
    }
    put(0xffffffffu);
}
