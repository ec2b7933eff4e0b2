// Bounds that move towards each other.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint v = x[id() & 4095u] & 0xffffu, low = 0, high = 65535u, steps = 0;
    while (low < high) {
        uint mid = low + (high - low) / 2u;
        steps++;
        if (mid == v) { low = mid; break; }
        if (mid < v) low = mid + 1u; else high = mid;
    }
    put(low * 100u + steps);
}
