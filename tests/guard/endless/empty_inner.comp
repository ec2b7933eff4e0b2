#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    begin();
    for (uint i = 0u; i < n; i++) {
        for (uint j = n; j < n; j++) { // never runs, nor does the poll in it
            for (uint k = 0u; k < n; k++) {
                data[0] = k;
            }
        }
        turn();
    }
    done = 1u;
}
