// WRONG: counts on an output that begins with zeros
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer H { uint h[]; };
layout(push_constant) uniform Push { uint n, shift; };
void main() {
    for (uint i = gl_LocalInvocationIndex; i < n; i += 256)
        atomicAdd(h[(x[i] + shift) % 256], 1);
}
