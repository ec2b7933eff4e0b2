#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// Lane 5 goes on long after the others, and leaves by returning.
void count(uint m) {
    uint i = 0u;
    while (true) {
        if (i >= m) {
            if (lane() == 5u) {
                return;
            }
            break;
        }
        turns += 1u + (i >> 31);
        i++;
    }
    turns += 0u;
}
void main() {
    const uint m = lane() == 5u ? n / 2u : 10u;
    count(m);
    count(m);
    finish(m * 2u);
}
