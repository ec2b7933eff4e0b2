// The reference: one invocation adds up.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) buffer Y { int y[]; };
layout(push_constant) uniform Push { uint n; };
void main() {
    int sum = 0;
    for (uint i = 0; i < n; i++) {
        sum += x[i];
        y[i] = sum;
    }
}
