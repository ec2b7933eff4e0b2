// WRONG: leaves out what is left of k behind whole tiles
#version 450
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0) readonly buffer A { float16_t a[]; };
layout(set = 0, binding = 1) readonly buffer B { float16_t b[]; };
layout(set = 0, binding = 2) buffer C { float c[]; };
layout(push_constant) uniform Push { uint m, n, k; };
shared float left[16][16], right[16][16];
void main() {
    uint col = gl_GlobalInvocationID.x, row = gl_GlobalInvocationID.y;
    uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
    float sum = 0;
    for (uint first = 0; first + 16 <= k; first += 16) {
        left[y][x] = row < m && first + x < k ? float(a[row * k + first + x]) : 0;
        right[y][x] = first + y < k && col < n ? float(b[(first + y) * n + col]) : 0;
        barrier();
        for (uint i = 0; i < 16; i++)
            sum += left[y][i] * right[i][x];
        barrier();
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
}
