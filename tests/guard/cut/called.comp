#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
uint f(uint m) {
    uint x = 0u;
    for (uint i = 0u; i < m; i++) {
        x += 1u + (i >> 31);
    }
    return x;
}
void main() {
    for (uint o = 0u; o < n / 1000u; o++) {
        turns += f(min(n, 1000u));
    }
    finish(n / 1000u * 1000u);
}
