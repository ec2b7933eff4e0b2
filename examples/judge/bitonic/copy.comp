// WRONG: copies its input; see careless.json
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer Y { uint y[]; };
layout(push_constant) uniform Push { uint n; };
void main() {
    for (uint i = gl_LocalInvocationIndex; i < n; i += 256)
        y[i] = x[i];
}
