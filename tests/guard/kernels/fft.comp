// Radix 2 in shared memory, twiddles computed.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
shared vec2 s[64];
void main() {
    uint l = gl_LocalInvocationID.x;
    s[bitfieldReverse(l) >> 26] = vec2(f(id()), 0);
    s[bitfieldReverse(l + 32u) >> 26] = vec2(f(id() + 32u), 0);
    barrier();
    for (uint h = 1u; h < 64u; h <<= 1) {
        uint k = l & (h - 1u), i = ((l - k) << 1) + k;
        float t = -3.14159265 * float(k) / float(h);
        vec2 w = vec2(cos(t), sin(t)), p = s[i], q = s[i + h];
        q = vec2(q.x * w.x - q.y * w.y, q.x * w.y + q.y * w.x);
        barrier();
        s[i] = p + q;
        s[i + h] = p - q;
        barrier();
    }
    put(s[l].x + s[l + 32u].y);
}
