// Bytes and halves of words, also as indices and counters.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    uint8_t b = uint8_t(id()); int16_t h = int16_t(3);
    uint t[200];
    for (uint i = 0; i < 200u; i++) t[i] = i * i;
    for (uint8_t i = uint8_t(0); i < uint8_t(100); i++) { b = uint8_t(b * uint8_t(5) + i); h += int16_t(b); }
    uint s = 0;
    for (int16_t i = int16_t(50); i > int16_t(-50); i -= int16_t(7)) s += uint(int(i) * int(h));
    put(s + t[uint(b) % 200u] + uint(uint16_t(h)));
}
