// CORRECT: maximum and sum in one pass, in each invocation again
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Push { uint rows, cols; };
void main() {
    uint first = gl_WorkGroupID.x * cols;
    float top = x[first], sum = 1;
    for (uint i = 1; i < cols; i++) {
        float next = max(top, x[first + i]);
        sum = sum * exp(top - next) + exp(x[first + i] - next);
        top = next;
    }
    for (uint i = gl_LocalInvocationIndex; i < cols; i += 64)
        y[first + i] = exp(x[first + i] - top) / sum;
}
