#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
uint work(uint m) {
    uint x = 1u;
    for (uint j = 0u; j < m; j++) {
        x = x * 5u + j;
        turn();
    }
    return x;
}
void main() {
    begin();
    uint x = 0u;
    for (uint i = 0u; i < n; i += 3u) {
        x += work(min(n, 3u));
    }
    data[0] = x;
    done = 1u;
}
