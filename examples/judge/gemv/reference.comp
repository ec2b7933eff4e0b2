// The reference: an invocation for each row. Its sum is an output of its own, to be exact.
#version 450
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer W { int8_t w[]; };
layout(set = 0, binding = 1) readonly buffer X { int8_t x[]; };
layout(set = 0, binding = 2) buffer Y { float y[]; };
layout(set = 0, binding = 3) buffer Sum { int sum_of[]; };
layout(push_constant) uniform Push { float scale; uint m, k; };
void main() {
    uint row = gl_GlobalInvocationID.x;
    if (row >= m)
        return;
    int sum = 0;
    for (uint i = 0; i < k; i++)
        sum += int(w[row * k + i]) * int(x[i]);
    sum_of[row] = sum;
    y[row] = scale * sum;
}
