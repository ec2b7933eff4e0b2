// Calls three deep, a loop in each.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
uint c3(uint v) { for (uint i = 0; i < (v & 7u); i++) v = v * 3u + i; return v; }
uint c2(uint v) { uint s = 0; for (uint i = 0; i < m; i++) s += c3(v + i); return s; }
uint c1(uint v) { uint i = 0; do { v ^= c2(v); i++; if (v == 0u) return i; } while (i < 5u); return v; }
void main() {
    uint s = 0;
    for (uint i = 0; i < 6u; i++) s += c1(x[(id() + i) & 4095u]);
    put(s);
}
