// Arrays, structs and vectors in workgroup memory, indexed dynamically.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
struct Cell { uvec4 v; float w[3]; };
shared Cell cells[32];
shared float grid[8][4];
void main() {
    uint l = gl_LocalInvocationID.x;
    cells[l].v = uvec4(x[l], x[l + 1u], x[l + 2u], x[l + 3u]);
    cells[l].w[l % 3u] = f(id());
    cells[l].w[(l + 1u) % 3u] = 1.0;
    cells[l].w[(l + 2u) % 3u] = 2.0;
    grid[l >> 2][l & 3u] = f(l);
    barrier();
    uint s = 0; float g = 0.0;
    for (uint i = 0; i < 32u; i++) {
        s += cells[(i * 7u + l) & 31u].v[(i + l) & 3u];
        g += cells[i].w[(s >> 3) % 3u] + grid[(s >> 5) & 7u][i & 3u];
    }
    put(s ^ floatBitsToUint(g));
}
