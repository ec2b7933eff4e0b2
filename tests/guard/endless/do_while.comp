#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    begin();
    uint i = 0u;
    do {
        turn();
        i++;
    } while (i < n);
    done = 1u;
}
