// A while loop that nobody can bound.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint v = (x[id() & 4095u] & 0xffffu) + 1u, steps = 0;
    while (v != 1u && steps < 2000u) { v = (v & 1u) == 0u ? v >> 1 : 3u * v + 1u; steps++; }
    put(steps);
}
