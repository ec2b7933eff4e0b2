#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// One lane at a time: none goes round often, the group does.
void main() {
    for (uint o = 0u; o < 16u; o++) {
        if (lane() == o) {
            for (uint i = 0u; i < n / 8u; i++) {
                turns += 1u + (i >> 31);
            }
        }
    }
    finish(n / 8u);
}
