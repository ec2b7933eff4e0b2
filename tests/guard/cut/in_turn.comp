#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    for (uint i = 0u; i < n / 3u; i++) {
        turns += 1u + (i >> 31);
    }
    for (uint i = 0u; i < n / 3u; i += 1u) {
        turns += 1u + (i >> 31);
    }
    uint k = 0u;
    do {
        turns += 1u + (k >> 31);
    } while (++k < n / 3u);
    finish(n / 3u * 3u);
}
