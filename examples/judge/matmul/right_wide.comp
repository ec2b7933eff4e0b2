// CORRECT: 32 columns in a workgroup, four partial sums
#version 450
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(local_size_x = 32, local_size_y = 4) in;
layout(set = 0, binding = 0) readonly buffer A { float16_t a[]; };
layout(set = 0, binding = 1) readonly buffer B { float16_t b[]; };
layout(set = 0, binding = 2) buffer C { float c[]; };
layout(push_constant) uniform Push { uint m, n, k; };
void main() {
    uint col = gl_GlobalInvocationID.x, row = gl_GlobalInvocationID.y, i = 0;
    if (row >= m || col >= n)
        return;
    vec4 sums = vec4(0);
    for (; i + 4 <= k; i += 4)
        for (uint j = 0; j < 4; j++)
            sums[j] += float(a[row * k + i + j]) * float(b[(i + j) * n + col]);
    for (; i < k; i++)
        sums[0] += float(a[row * k + i]) * float(b[i * n + col]);
    c[row * n + col] = sums[0] + sums[1] + sums[2] + sums[3];
}
