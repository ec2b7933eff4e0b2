// Loops with compound conditions and side effects in them.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
bool next(inout uint s) { s = s * 1664525u + 1013904223u; return (s >> 28) != 3u; }
void main() {
    uint s = id(), c = 0, d = 0;
    while (c < n && (next(s) || d++ < 3u) && !(s == 0u)) c++;
    for (uint i = 0, j = 100u; i < j; i += 2u, j--) c += i ^ j;
    put(s + c * 1000u + d);
}
