// Components and columns chosen when it runs.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    vec4 v = vec4(f(id()), f(id() + 1u), f(id() + 2u), f(id() + 3u));
    mat3 q = mat3(v.xyz, v.yzw, v.zwx);
    uvec3 g = gl_GlobalInvocationID;
    for (uint i = 0; i < n; i++) {
        uint k = x[(id() + i) & 4095u];
        v[k & 3u] += v[(k >> 2) & 3u] * 0.25;
        q[k % 3u][(k >> 4) % 3u] = v[i & 3u] - q[(k >> 6) % 3u].x;
        v.x += float(g[k % 3u]);
    }
    put(v.x + v.y * v.z - v.w + q[0].x + q[1].y + q[2].z);
}
