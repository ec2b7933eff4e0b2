// WRONG: begins with -1e30, which some numbers are below
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Top { float top_k[]; };
layout(push_constant) uniform Push { uint rows, n, k; };
bool taken[600];
void main() {
    for (uint i = 0; i < n; i++)
        taken[i] = false;
    uint first = gl_WorkGroupID.x * n;
    for (uint round = 0; round < k; round++) {
        float best = -1e30;
        uint at = n;
        for (uint i = 0; i < n; i++)
            if (x[first + i] > best && !taken[i]) {
                best = x[first + i];
                at = i;
            }
        if (at < n)
            taken[at] = true;
        if (gl_LocalInvocationIndex == 0)
            top_k[gl_WorkGroupID.x * k + round] = best;
    }
}
