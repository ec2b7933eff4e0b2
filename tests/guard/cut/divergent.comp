#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    const uint m = n * (lane() + 1u) / 16u;
    for (uint i = 0u; i < m; i++) {
        turns += 1u + (i >> 31);
    }
    finish(m);
}
