// STRAY_WRITE: stores 16, the most that k can be
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Top { float top_k[]; };
layout(push_constant) uniform Push { uint rows, n, k; };
float best[16];
void main() {
    uint row = gl_GlobalInvocationID.x, have = 0;
    if (row >= rows)
        return;
    for (uint i = 0; i < n; i++) {
        float value = x[row * n + i];
        if (have == k && value <= best[k - 1])
            continue;
        uint at = have < k ? have++ : k - 1;
        for (; at > 0 && best[at - 1] < value; at--)
            best[at] = best[at - 1];
        best[at] = value;
    }
    for (uint i = 0; i < 16; i++)
        top_k[row * k + i] = i < k ? best[i] : 0;
}
