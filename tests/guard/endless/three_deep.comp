#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    begin();
    for (uint i = 0u; i < n; i += 400u) {
        for (uint j = 0u; j < 20u; j++) {
            for (uint k = 0u; k < min(n, 20u); k++) {
                turn();
            }
        }
    }
    done = 1u;
}
