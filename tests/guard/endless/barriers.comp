#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
shared uint cell;
void main() {
    begin();
    for (uint i = 0u; i < n; i++) {
        cell = i;
        barrier();
        turn();
        barrier();
    }
    done = 1u;
}
