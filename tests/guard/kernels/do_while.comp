// Loops that test at their end.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint s = id() + 1u, steps = 0;
    do {
        uint t = s & 15u;
        do { s = s * 1664525u + 1013904223u; t++; } while (t < 16u);
        steps++;
    } while ((s & 63u) != 0u && steps < n);
    put(s ^ steps);
}
