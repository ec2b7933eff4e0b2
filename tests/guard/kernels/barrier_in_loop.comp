// A barrier in each iteration.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
shared uint ring[32];
void main() {
    uint l = gl_LocalInvocationID.x;
    ring[l] = x[id() & 4095u];
    barrier();
    for (uint i = 0; i < n; i++) {
        uint v = ring[(l + i) & 31u];
        barrier();
        ring[l] = ring[l] * 3u + v;
        barrier();
    }
    put(ring[31u - l]);
}
