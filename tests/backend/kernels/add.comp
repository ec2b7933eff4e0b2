#version 450
// y[i] = x[i] + c
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { uint y[]; };
layout(push_constant) uniform Push { uint c; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < y.length()) y[i] = x[i] + c;
}
