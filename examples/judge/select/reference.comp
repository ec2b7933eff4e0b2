// The reference: one invocation inserts each number among the largest so far. Any order of them is right.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) buffer Kept { int kept[]; };
layout(push_constant) uniform Push { uint n, k; };
int best[40];
void main() {
    uint have = 0;
    for (uint i = 0; i < n; i++) {
        if (have == k && x[i] <= best[k - 1])
            continue;
        uint at = have < k ? have++ : k - 1;
        for (; at > 0 && best[at - 1] < x[i]; at--)
            best[at] = best[at - 1];
        best[at] = x[i];
    }
    for (uint i = 0; i < k; i++)
        kept[i] = best[i];
}
