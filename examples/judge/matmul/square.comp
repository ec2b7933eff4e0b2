// WRONG: takes n for k, which is right for square matrices
#version 450
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0) readonly buffer A { float16_t a[]; };
layout(set = 0, binding = 1) readonly buffer B { float16_t b[]; };
layout(set = 0, binding = 2) buffer C { float c[]; };
layout(push_constant) uniform Push { uint m, n, k; };
void main() {
    uint col = gl_GlobalInvocationID.x, row = gl_GlobalInvocationID.y;
    if (row >= m || col >= n)
        return;
    float sum = 0;
    for (uint i = 0; i < k; i++)
        sum += float(a[row * n + i]) * float(b[i * n + col]);
    c[row * n + col] = sum;
}
