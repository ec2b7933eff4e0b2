// Tiles in shared memory, a barrier on each side.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 8, local_size_y = 8) in;
#include "common.glsl"
const uint T = 8;
shared float ta[T][T]; shared float tb[T][T];
void main() {
    uint lx = gl_LocalInvocationID.x, ly = gl_LocalInvocationID.y;
    float sum = 0.0;
    for (uint t = 0; t < n; t += T) {
        ta[ly][lx] = f(gl_GlobalInvocationID.y * n + t + lx);
        tb[ly][lx] = f((t + ly) * n + gl_GlobalInvocationID.x);
        barrier();
        for (uint i = 0; i < T; i++) sum += ta[ly][i] * tb[i][lx];
        barrier();
    }
    put(sum);
}
