// A large switch, sparse values, with loops in its arms.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint v = x[id() & 4095u], s = 0;
    switch (int(v & 127u) - 20) {
    case -20: case -3: s = 1u; break;
    case 0: for (uint i = 0; i < m; i++) s += x[i] * i; break;
    case 5: s = 9u;
    case 6: for (uint i = n; i-- > 0u;) s ^= i * v; break;
    case 17: { uint i = 0; do { s += i * i; if (s > 500u) break; } while (++i < n); break; }
    case 90: case 91: case 92: s = v >> 3; break;
    default: if ((v & 1u) != 0u) s = v * v; else s = ~v;
    }
    put(s);
}
