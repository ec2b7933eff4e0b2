// Loops whose body is one block once they are optimised.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint s = x[id() & 4095u], i = 0;
    do { s = s * 1103515245u + 12345u; } while (++i < n * 16u);
    float z = f(id());
    uint j = 0;
    do { z = fma(z, 0.99, 0.25); j += 1u; } while (j != n);
    put(s ^ floatBitsToUint(z));
}
