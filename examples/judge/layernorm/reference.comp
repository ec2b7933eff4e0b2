// The reference: an invocation for each row, and the variance of differences from the mean.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer Gain { float gain[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) buffer Y { float y[]; };
layout(push_constant) uniform Push { float eps; uint rows, cols; };
void main() {
    uint row = gl_GlobalInvocationID.x, first = row * cols;
    if (row >= rows)
        return;
    float mean = 0, variance = 0;
    for (uint i = 0; i < cols; i++)
        mean += x[first + i] - x[first];
    mean = x[first] + mean / cols;
    for (uint i = 0; i < cols; i++)
        variance += (x[first + i] - mean) * (x[first + i] - mean);
    for (uint i = 0; i < cols; i++)
        y[first + i] = (x[first + i] - mean) / sqrt(variance / cols + eps) * gain[i] + bias[i];
}
