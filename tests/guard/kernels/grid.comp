// How many workgroups there are, in every way that GLSL reads it: as a whole, a component, by a
// computed index, in a function, as the bound and the step of a loop.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
uint of(uint axis) { return gl_NumWorkGroups[axis % 3u]; }
void main() {
    uvec3 size = gl_NumWorkGroups;
    uint sum = size.x * 100u + size.y * 10u + size.z + (gl_NumWorkGroups.y << 12);
    for (uint i = 0; i < gl_NumWorkGroups.x * 1000u; i++) sum = sum * 1664525u + x[i & 4095u];
    for (uint i = gl_WorkGroupID.x; i < n * 100u; i += gl_NumWorkGroups.x) sum ^= f(i) > 8.0 ? i : sum << 1;
    put(sum + of(x[id() & 4095u]) * 65536u);
}
