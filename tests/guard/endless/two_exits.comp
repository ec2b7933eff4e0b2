#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    begin();
    uint x = 1u;
    for (uint i = 0u; i < n; i++) {
        turn();
        x = x * 1664525u + 1013904223u;
        if (x == 0x12345678u) {
            break;
        }
    }
    data[0] = x;
    done = 1u;
}
