// Maximum, sum of exponentials, quotient.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint row = id() * 16u;
    float top = -1e30, sum = 0.0, out_ = 0.0;
    for (uint i = 0; i < n; i++) top = max(top, f(row + i));
    for (uint i = 0; i < n; i++) sum += exp(f(row + i) - top);
    for (uint i = 0; i < n; i++) out_ += exp(f(row + i) - top) / sum * float(i);
    put(out_);
}
