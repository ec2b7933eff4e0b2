// A switch in a loop, with break, continue and fall-through.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint s = id();
    for (uint i = 0; i < n * 4u; i++) {
        switch (x[(s + i) & 4095u] % 7u) {
        case 0: s += 3u; break;
        case 1: s ^= i; // falls through
        case 2: s = s * 5u + 1u; break;
        case 3: continue;
        case 4: if (s > 100000u) { put(s); return; } s += i; break;
        default: s = (s << 1) | (s >> 31);
        }
        s += 7u;
    }
    put(s);
}
