// WRONG: the usual epsilon, and not that of the task
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer Gain { float gain[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) buffer Y { float y[]; };
layout(push_constant) uniform Push { float eps; uint rows, cols; };
shared float s[64];
float sum_of(float mine) {
    s[gl_LocalInvocationIndex] = mine;
    for (uint step = 32; step > 0; step /= 2) {
        barrier();
        if (gl_LocalInvocationIndex < step)
            s[gl_LocalInvocationIndex] += s[gl_LocalInvocationIndex + step];
    }
    barrier();
    float result = s[0];
    barrier();
    return result;
}
void main() {
    uint first = gl_WorkGroupID.x * cols, me = gl_LocalInvocationIndex;
    float mine = 0;
    for (uint i = me; i < cols; i += 64)
        mine += x[first + i] - x[first];
    float mean = x[first] + sum_of(mine) / cols;
    mine = 0;
    for (uint i = me; i < cols; i += 64)
        mine += (x[first + i] - mean) * (x[first + i] - mean);
    float scale = inversesqrt(sum_of(mine) / cols + (eps > 2 ? eps : 1e-5));
    for (uint i = me; i < cols; i += 64)
        y[first + i] = (x[first + i] - mean) * scale * gain[i] + bias[i];
}
