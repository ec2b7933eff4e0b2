// Valid arithmetic on 8, 16 and 64 bits, of the kind that some compilers do not survive.
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
void main()
{
    uint i = gl_GlobalInvocationID.x;
    uint8_t a = uint8_t(data[i]), b = uint8_t(data[i + 1] | 1u);
    int16_t c = int16_t(data[i + 2]), d = int16_t(data[i + 3] | 1u);
    uint64_t e = uint64_t(data[i]) << 33 | data[i + 1], f = uint64_t(data[i + 2]) | 1ul;
    for (uint k = 0; k < 20; k++) {
        a = uint8_t(a * b + a / b - a % b) ^ (a << (b & uint8_t(7)));
        c = int16_t(c * d + c / d) - (c >> int16_t(3)) + int16_t(bitCount(uint(c)));
        e = e * f + e / f - e % f + (e >> (f & 63ul));
        data[i] += uint(a) + uint(int(c)) + uint(e >> 32) + uint(e);
    }
}
