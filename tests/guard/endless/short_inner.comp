#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// The inner loop is left alone; what it weighs counts for the outer one.
void main() {
    begin();
    uint x = 0u;
    for (uint i = 0u; i < n; i += 50u) {
        for (uint j = 0u; j < 50u; j++) {
            x = x * 3u + j;
            turn();
        }
    }
    data[0] = x;
    done = 1u;
}
