// Steps down, past zero and past the top.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint s = 0;
    for (uint i = n; i-- > 0u;) s = s * 3u + i;
    for (uint i = 0xffffffe0u; i > 16u; i += 3u) s ^= i;
    for (int i = 2147483600; i > 0; i += 5) s += uint(i);
    for (int i = int(n); i >= -4; i -= 3) s = (s << 3) ^ uint(i);
    for (uint i = 1u; i != 0u; i <<= 1) s += i & x[id() & 4095u];
    put(s);
}
