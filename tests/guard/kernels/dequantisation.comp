// Four bits through a table, a scale for each block of 32.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
const float table[16] = float[](-1., -.69, -.52, -.39, -.28, -.18, -.09, 0., .08, .16, .25, .34, .44, .56, .72, 1.);
void main() {
    uint block = id();
    float scale = f(block * 5u), sum = 0.0;
    float lane[4] = float[](0., 0., 0., 0.);
    for (uint i = 0; i < 4u; i++) {
        uint q = x[(block * 5u + 1u + i) & 4095u];
        for (uint j = 0; j < 8u; j++) {
            float v = table[q & 15u] * scale;
            q >>= 4;
            lane[j & 3u] += v * f(i * 8u + j);
            sum = max(sum, abs(v));
        }
    }
    put(lane[0] + lane[1] + lane[2] + lane[3] + sum);
}
