#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    begin();
    for (uint i = 0u; i < n * 3u; i += 3u) {
        turn();
    }
    done = 1u;
}
