#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    for (uint i = 0u; i < n / 100u; i++) {
        for (uint j = 0u; j < min(n, 100u); j++) {
            turns += 1u + (j >> 31);
        }
    }
    finish(n / 100u * 100u);
}
