// Functions with return values, out and inout parameters, loops in them.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
uint power(uint b, uint e) { uint r = 1u; while (e > 0u) { if ((e & 1u) == 1u) r *= b; b *= b; e >>= 1; } return r; }
bool step(inout uint s, out uint t) { t = s >> 3; s = s * 69069u + 1u; return (s & 4096u) != 0u; }
vec3 mix3(vec3 v, uint k) { for (uint i = 0; i < k; i++) v = v.yzx * 0.5 + vec3(1, 2, 3) * float(i); return v; }
uint find(uint v) { for (uint i = 0; i < n; i++) { if (x[i] % 97u == v % 97u) return i; } return n; }
void main() {
    uint s = id(), t = 0, c = 0;
    for (uint i = 0; i < n && step(s, t) || i < 5u; i++) c += power(t, i & 7u) + find(s);
    put(c + floatBitsToUint(mix3(vec3(f(s), f(t), f(c)), m).y));
}
