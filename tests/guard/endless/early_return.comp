#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
uint find(uint m) {
    for (uint i = 0u; i < m; i++) {
        turn();
        if (data[i & 7u] == 12345u) {
            return i;
        }
    }
    return m;
}
void main() {
    begin();
    for (uint t = 0u; t < 2u; t++) { // short, but what it calls is not
        data[9] = find(n / 2u);
    }
    done = 1u;
}
