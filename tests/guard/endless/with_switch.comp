#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    begin();
    uint x = 0u;
    for (uint i = 0u; i < n; i++) {
        turn();
        switch (i % 5u) {
        case 0u: x += 1u; break;
        case 1u: x += 2u; continue;
        case 2u: x *= 3u; // falls through
        case 3u: x ^= 4u; break;
        default: if (x == 77u) return; break;
        }
        x += 5u;
    }
    data[0] = x;
    done = 1u;
}
