// A reduction by a loop, then one pass.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 32) in;
#include "common.glsl"
shared float sq[32];
void main() {
    uint l = gl_LocalInvocationID.x;
    float s = 0.0;
    for (uint i = l; i < n * 4u; i += gl_WorkGroupSize.x) { float v = f(i + gl_WorkGroupID.x * 64u); s += v * v; }
    sq[l] = s;
    barrier();
    [[unroll]] for (uint d = gl_WorkGroupSize.x / 2u; d > 0u; d /= 2u) {
        if (l < d) sq[l] += sq[l + d];
        barrier();
    }
    put(f(id()) * inversesqrt(sq[0] / float(n * 4u) + 1e-5));
}
