// 64 bits: counters and sums.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint64_t s = uint64_t(id()) << 33;
    for (int64_t i = -40l; i < int64_t(n); i += 3l) s = s * 6364136223846793005ul + uint64_t(i);
    for (uint64_t i = 0ul; i * i < uint64_t(n); i++) s ^= i << 20;
    put(uint(s >> 32) ^ uint(s));
}
