// Three loops in each other, bounds that depend on each other.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint sum = 0;
    for (uint i = 0; i < n; i++)
        for (uint j = i; j < n; j += 3)
            for (int k = int(j); k > 0; k -= 5)
                sum = sum * 31u + x[(i + j + uint(k) + id()) & 4095u];
    put(sum);
}
