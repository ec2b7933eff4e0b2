// A loop whose step is another's variable.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint bits[8];
    for (uint i = 0; i < 8u; i++) bits[i] = 0xffffffffu;
    for (uint p = 2; p * p < 256u; p++) {
        if ((bits[p >> 5] & (1u << (p & 31u))) == 0u) continue;
        for (uint q = p * p; q < 256u; q += p) bits[q >> 5] &= ~(1u << (q & 31u));
    }
    uint s = id();
    for (uint i = 0; i < 8u; i++) s += uint(bitCount(bits[i])) << i;
    put(s);
}
