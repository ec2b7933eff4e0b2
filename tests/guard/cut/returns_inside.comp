#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// The rounds are the outer loop's, and the inner one returns: the next call finds few left.
void count(uint m) {
    for (uint i = 0u; i < n; i++) {
        turns += 1u + (i >> 31);
        if (i + 1u == m) {
            for (uint j = 0u; j < n; j++) {
                if ((j + m) % 3u == 0u) {
                    return;
                }
            }
        }
    }
}
void main() {
    count(n / 2u);
    count(n / 2u);
    finish(n / 2u * 2u);
}
