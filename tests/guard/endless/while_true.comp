#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    begin();
    uint i = 0u;
    while (true) {
        if (i++ >= n) {
            break;
        }
        turn();
    }
    done = 1u;
}
