// WRONG: 16 partial sums of an element, of which the last writer stays
#version 450
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0) readonly buffer A { float16_t a[]; };
layout(set = 0, binding = 1) readonly buffer B { float16_t b[]; };
layout(set = 0, binding = 2) buffer C { float c[]; };
layout(push_constant) uniform Push { uint m, n, k; };
void main() {
    uint col = gl_WorkGroupID.x * 16 + gl_LocalInvocationID.y, part = gl_LocalInvocationID.x;
    for (uint row = gl_WorkGroupID.y * 16; row < min(m, gl_WorkGroupID.y * 16 + 16); row++) {
        float sum = 0;
        for (uint i = part; i < k && col < n; i += 16)
            sum += float(a[row * k + i]) * float(b[i * n + col]);
        if (col < n)
            c[row * n + col] = 0;
        barrier();
        if (col < n)
            c[row * n + col] += sum;
        barrier();
    }
}
