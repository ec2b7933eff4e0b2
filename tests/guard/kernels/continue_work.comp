// Work and calls in what a loop does between iterations.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
uint mixed(uint v) { for (uint i = 0; i < 3u; i++) v = v * 5u + i; return v; }
void main() {
    uint s = id();
    for (uint i = 0; i < n; i += 1u + mixed(s) % 3u) { if ((s & 1u) == 0u) { s += 3u; continue; } s = s * 9u + i; }
    for (uint i = 0, t = 0; i < m; t = x[(i + s) & 4095u], s += t > 1000u ? t : 1u, i++) s ^= i;
    put(s);
}
