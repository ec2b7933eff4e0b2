// CORRECT: Welford's mean and variance, in each invocation again
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer Gain { float gain[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) buffer Y { float y[]; };
layout(push_constant) uniform Push { float eps; uint rows, cols; };
void main() {
    uint first = gl_WorkGroupID.x * cols;
    float mean = 0, squares = 0;
    for (uint i = 0; i < cols; i++) {
        float difference = x[first + i] - mean;
        mean += difference / (i + 1);
        squares += difference * (x[first + i] - mean);
    }
    for (uint i = gl_LocalInvocationIndex; i < cols; i += 64)
        y[first + i] = (x[first + i] - mean) / sqrt(squares / cols + eps) * gain[i] + bias[i];
}
