// An array of each invocation, sorted by insertion.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
uint counts[16];
void main() {
    uint a_[24];
    for (uint i = 0; i < 24u; i++) a_[i] = x[(id() * 24u + i) & 4095u];
    for (uint i = 1; i < 24u; i++) {
        uint v = a_[i]; int j = int(i) - 1;
        while (j >= 0 && a_[j] > v) { a_[j + 1] = a_[j]; j--; }
        a_[j + 1] = v;
    }
    for (uint i = 0; i < 16u; i++) counts[i] = 0u;
    for (uint i = 0; i < 24u; i++) counts[a_[i] & 15u] += i;
    uint s = 0;
    for (uint i = 0; i < 16u; i++) s = s * 33u + counts[i];
    put(s ^ a_[id() % 24u]);
}
