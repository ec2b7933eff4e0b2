#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    const uint m = n - lane() * (n / 32u);
    for (uint i = 0u; i < n; i++) {
        if (i == m) {
            break;
        }
        if ((i & 3u) == 3u) {
            turns += 1u;
            continue;
        }
        turns += 1u + (i >> 31);
    }
    finish(m);
}
