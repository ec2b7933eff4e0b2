#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    begin();
    for (uint i = 0u; i < n; i++) {
        turn();
        if ((i & 1u) != 0u) {
            continue;
        }
        data[i & 7u] = i;
    }
    done = 1u;
}
