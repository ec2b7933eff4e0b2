// Uses all the descriptor sets that a device may have, and counts how often its loop runs.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 1, binding = 0) readonly buffer B { uint b[]; };
layout(set = 2, binding = 1) readonly buffer C { uint c[]; };
layout(set = 3, binding = 0) uniform D { uint d; };
layout(set = 4, binding = 0) readonly buffer E { uint e[]; };
layout(set = 5, binding = 0) readonly buffer F { uint f[]; };
layout(set = 6, binding = 0) readonly buffer G { uint g[]; };
layout(set = 7, binding = 0) buffer Y { uint y[]; };
layout(set = 7, binding = 3) readonly buffer H { uint h[]; };
void main() {
    uint i = gl_GlobalInvocationID.x, sum = 0;
    for (uint n = 0; n < d; n++) sum += a[i] ^ n;
    y[i] += sum + b[i] + c[i] + e[i] + f[i] + g[i] + h[i];
}
