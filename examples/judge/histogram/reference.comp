// The reference: each invocation counts one value. The value x is counted in (x + shift) % 256.
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer H { uint h[]; };
layout(push_constant) uniform Push { uint n, shift; };
void main() {
    uint me = gl_LocalInvocationIndex, count = 0;
    for (uint i = 0; i < n; i++)
        count += (x[i] + shift) % 256 == me ? 1 : 0;
    h[me] = count;
}
