#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// Lanes of one group in different loops: both count for the group.
void main() {
    if ((lane() & 1u) != 0u) {
        for (uint i = 0u; i < n / 2u; i++) {
            turns += 1u + (i >> 31);
        }
    } else {
        for (uint i = n / 2u; i > 0u; i--) {
            turns += 1u + (i >> 31);
        }
    }
    finish(n / 2u);
}
