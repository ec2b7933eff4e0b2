#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    begin();
    for (uint i = 0u; i < n; i += 100u) {
        for (uint j = 0u; j < min(n, 100u); j++) {
            turn();
        }
    }
    done = 1u;
}
