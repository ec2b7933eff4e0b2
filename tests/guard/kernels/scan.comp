// Inclusive, by doubling.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
shared uint s[2][32];
void main() {
    uint l = gl_LocalInvocationID.x, from = 0;
    s[0][l] = x[id() & 4095u];
    barrier();
    for (uint d = 1u; d < 32u; d *= 2u) {
        s[1u - from][l] = l >= d ? s[from][l] + s[from][l - d] : s[from][l];
        from = 1u - from;
        barrier();
    }
    put(s[from][l]);
}
