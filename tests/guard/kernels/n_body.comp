// All pairs, through shared memory.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
shared vec4 body[32];
void main() {
    uint l = gl_LocalInvocationID.x;
    vec3 p = vec3(f(id()), f(id() + 9u), f(id() + 5u)), acc = vec3(0);
    for (uint t = 0; t < 8u; t++) {
        body[l] = vec4(f(t * 32u + l), f(t * 31u + l), f(t * 29u + l), 1.0 + f(l));
        barrier();
        for (uint i = 0; i < 32u; i++) { vec3 d = body[i].xyz - p; acc += d * (body[i].w * inversesqrt(dot(d, d) + 0.01)); }
        barrier();
    }
    put(acc.x + acc.y + acc.z);
}
