#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// Optimised, its loop stands in the continue construct of the other.
uint step_of(uint m) {
    uint x = 0u;
    for (uint j = 0u; j < m; j++) {
        x += 1u;
        turn();
    }
    return max(x, 1u);
}
void main() {
    begin();
    for (uint i = 0u; i < n; i += step_of(min(n, 100u))) {
        data[i & 7u] = i;
    }
    done = 1u;
}
