#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// Each level calls the next in a loop: the counter must not start over on the way up.
uint f0(uint m) { uint x = 0u; for (uint j = 0u; j < m; j++) { x += j; turn(); } return x; }
uint f1(uint m) { uint x = 0u; for (uint j = 0u; j < m; j++) { x += f0(m); } return x; }
uint f2(uint m) { uint x = 0u; for (uint j = 0u; j < m; j++) { x += f1(m); } return x; }
void main() {
    begin();
    uint x = 0u;
    for (uint j = 0u; j < n / 1000u; j++) {
        x += f2(min(n, 10u));
    }
    data[0] = x;
    done = 1u;
}
