// Recursion turned into loops, by subtraction and by remainder.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
uint slow(uint p, uint q) { while (p != q) { if (p == 0u || q == 0u) return p + q; if (p > q) p -= q; else q -= p; } return p; }
uint fast(uint p, uint q) { for (;;) { if (q == 0u) return p; uint t = p % q; p = q; q = t; } }
void main() {
    uint p = (x[id() & 4095u] & 4095u) + 1u, q = (x[(id() + 1u) & 4095u] & 1023u) + 1u;
    put(slow(p, q) * 65536u + fast(p, q));
}
