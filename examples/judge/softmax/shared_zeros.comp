// WRONG: adds to workgroup memory as if it began with zeros
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Push { uint rows, cols; };
shared float s[64];
void main() {
    uint first = gl_WorkGroupID.x * cols, me = gl_LocalInvocationIndex;
    float top = x[first];
    for (uint i = 1; i < cols; i++)
        top = max(top, x[first + i]);
    for (uint i = me; i < cols; i += 64)
        s[me] += exp(x[first + i] - top);
    barrier();
    float sum = 0;
    for (uint i = 0; i < 64; i++)
        sum += s[i];
    for (uint i = me; i < cols; i += 64)
        y[first + i] = exp(x[first + i] - top) / sum;
}
