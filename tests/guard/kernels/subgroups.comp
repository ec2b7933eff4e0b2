// Subgroup operations in a loop.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_vote : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint s = x[id() & 4095u];
    for (uint i = 0; i < m; i++) {
        s += subgroupInclusiveAdd(s & 255u);
        s ^= subgroupMax(s) >> 3;
        if (subgroupAny((s & 1023u) == 77u)) s += 1u;
    }
    put(s);
}
