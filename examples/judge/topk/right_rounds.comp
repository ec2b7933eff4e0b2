// CORRECT: k rounds, each finds the next in order of value and index
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Top { float top_k[]; };
layout(push_constant) uniform Push { uint rows, n, k; };
void main() {
    uint first = gl_WorkGroupID.x * n, last = 0;
    for (uint round = 0; round < k; round++) {
        uint best = n;
        for (uint i = 0; i < n; i++) {
            bool later = round == 0 || x[first + i] < x[first + last] || (x[first + i] == x[first + last] && i > last);
            if (later && (best == n || x[first + i] > x[first + best]))
                best = i;
        }
        last = best;
        if (gl_LocalInvocationIndex == 0)
            top_k[gl_WorkGroupID.x * k + round] = x[first + best];
    }
}
