// Each invocation its own word, by every atomic.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint at = id();
    for (uint i = 0; i < n; i++) {
        uint v = x[(at + i) & 4095u];
        atomicAdd(y[at], v & 15u);
        atomicXor(y[at], v);
        atomicMax(y[at], v >> 4);
        if (atomicCompSwap(y[at], v, ~v) == v) break;
        atomicExchange(y[at], y[at] * 3u);
    }
}
