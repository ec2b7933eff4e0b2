// WRONG: takes equal numbers once
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Top { float top_k[]; };
layout(push_constant) uniform Push { uint rows, n, k; };
void main() {
    uint first = gl_WorkGroupID.x * n;
    float last = uintBitsToFloat(0x7f800000u);
    for (uint round = 0; round < k; round++) {
        float best = -uintBitsToFloat(0x7f800000u);
        for (uint i = 0; i < n; i++)
            if (x[first + i] < last)
                best = max(best, x[first + i]);
        last = best;
        if (gl_LocalInvocationIndex == 0)
            top_k[gl_WorkGroupID.x * k + round] = best;
    }
}
