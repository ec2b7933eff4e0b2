// WRONG: the best of each 64th of the row, which is often right for random rows
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Top { float top_k[]; };
layout(push_constant) uniform Push { uint rows, n, k; };
float best[64];
void main() {
    uint row = gl_GlobalInvocationID.x;
    if (row >= rows)
        return;
    for (uint i = 0; i < 64; i++)
        best[i] = -uintBitsToFloat(0x7f800000u);
    for (uint i = 0; i < n; i++)
        best[i * 64 / n] = max(best[i * 64 / n], x[row * n + i]);
    for (uint round = 0; round < k; round++) {
        uint at = 0;
        for (uint i = 1; i < 64; i++)
            at = best[i] > best[at] ? i : at;
        top_k[row * k + round] = best[at];
        best[at] = -uintBitsToFloat(0x7f800000u);
    }
}
