// The reference: an invocation for each row.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Push { uint rows, cols; };
void main() {
    uint row = gl_GlobalInvocationID.x, first = row * cols;
    if (row >= rows)
        return;
    float top = x[first], sum = 0;
    for (uint i = 1; i < cols; i++)
        top = max(top, x[first + i]);
    for (uint i = 0; i < cols; i++)
        sum += exp(x[first + i] - top);
    for (uint i = 0; i < cols; i++)
        y[first + i] = exp(x[first + i] - top) / sum;
}
