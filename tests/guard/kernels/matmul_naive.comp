// One row by one column for each invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint row = id() / m, column = id() % m;
    float sum = 0.0;
    for (uint i = 0; i < n; i++) sum += f(row * n + i) * f(i * m + column);
    put(sum);
}
