// STRAY_READ: takes four at a time, never behind the matrix, but behind the vector
#version 450
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer W { int8_t w[]; };
layout(set = 0, binding = 1) readonly buffer X { int8_t x[]; };
layout(set = 0, binding = 2) buffer Y { float y[]; };
layout(set = 0, binding = 3) buffer Sum { int sum_of[]; };
layout(push_constant) uniform Push { float scale; uint m, k; };
shared int s[64];
void main() {
    uint row = gl_WorkGroupID.x, me = gl_LocalInvocationIndex;
    int sum = 0;
    for (uint i = me; i < (k + 3) / 4 * 4; i += 64)
        sum += int(w[min(row * k + i, m * k - 1)]) * int(x[i]);
    s[me] = sum;
    barrier();
    if (me == 0) {
        for (uint i = 1; i < 64; i++)
            sum += s[i];
        sum_of[row] = sum;
        y[row] = scale * sum;
    }
}
