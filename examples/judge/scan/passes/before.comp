// One invocation adds up what is before each block.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer Sums { int sums[]; };
layout(set = 0, binding = 1) buffer Before { int before[]; };
layout(push_constant) uniform Push { uint n; };
void main() {
    int sum = 0;
    for (uint i = 0; i < (n + BLOCK - 1) / BLOCK; i++) {
        before[i] = sum;
        sum += sums[i];
    }
}
