// for (;;), left only from deep inside.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint s = x[id() & 4095u] | 1u, c = 0;
    for (;;) {
        for (;;) {
            s ^= s << 13; s ^= s >> 17; s ^= s << 5; c++;
            if ((s & 15u) == 0u) break;
            if (c > n * 10u) { put(s); return; }
        }
        if ((s & 0xff0u) == 0x120u) break;
    }
    put(s ^ c);
}
