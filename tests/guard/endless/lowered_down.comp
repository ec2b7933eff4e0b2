#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
void main() {
    begin();
    for (int i = int(n & 0x7fffffffu); i > 0; i--) {
        turn();
    }
    done = 1u;
}
