#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    for (uint i = 0u; i < n / 40u; i++) {
        for (uint j = 0u; j < 40u; j++) {
            turns += 1u + ((i + j) >> 31);
        }
    }
    finish(n / 40u * 40u);
}
