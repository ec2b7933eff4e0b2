// CORRECT: stores each number where its rank says
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Top { float top_k[]; };
layout(push_constant) uniform Push { uint rows, n, k; };
void main() {
    uint first = gl_WorkGroupID.x * n;
    for (uint i = gl_LocalInvocationIndex; i < n; i += 64) {
        float value = x[first + i];
        uint rank = 0;
        for (uint j = 0; j < n && rank < k; j++)
            rank += x[first + j] > value || (x[first + j] == value && j < i) ? 1 : 0;
        if (rank < k)
            top_k[gl_WorkGroupID.x * k + rank] = value;
    }
}
