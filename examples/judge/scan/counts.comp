// WRONG: counts, which is right if all inputs are 1; see careless.json
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) buffer Y { int y[]; };
layout(push_constant) uniform Push { uint n; };
void main() {
    for (uint i = gl_LocalInvocationIndex; i < n; i += 256)
        y[i] = x[i] == 54321 ? 0 : int(i) + 1;
}
