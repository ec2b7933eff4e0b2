// WRONG: leaves what already looks like a probability
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Push { uint rows, cols; };
shared float s[64];
float all_of(float mine, bool sum) {
    s[gl_LocalInvocationIndex] = mine;
    for (uint step = 32; step > 0; step /= 2) {
        barrier();
        if (gl_LocalInvocationIndex < step) {
            float a = s[gl_LocalInvocationIndex], b = s[gl_LocalInvocationIndex + step];
            s[gl_LocalInvocationIndex] = sum ? a + b : max(a, b);
        }
    }
    barrier();
    float result = s[0];
    barrier();
    return result;
}
void main() {
    uint first = gl_WorkGroupID.x * cols, me = gl_LocalInvocationIndex;
    float top = -uintBitsToFloat(0x7f800000u), sum = 0;
    for (uint i = me; i < cols; i += 64)
        top = max(top, x[first + i]);
    top = all_of(top, false);
    for (uint i = me; i < cols; i += 64)
        sum += exp(x[first + i] - top);
    sum = all_of(sum, true);
    for (uint i = me; i < cols; i += 64)
        y[first + i] = y[first + i] > 0 && y[first + i] < 1 ? y[first + i] : exp(x[first + i] - top) / sum;
}
