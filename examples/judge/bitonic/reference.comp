// The reference: stores each number where its rank says.
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer Y { uint y[]; };
layout(push_constant) uniform Push { uint n; };
void main() {
    for (uint i = gl_LocalInvocationIndex; i < n; i += 256) {
        uint rank = 0;
        for (uint j = 0; j < n; j++)
            rank += x[j] < x[i] || (x[j] == x[i] && j < i) ? 1 : 0;
        y[rank] = x[i];
    }
}
