// WRONG: takes the first k
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) buffer Kept { int kept[]; };
layout(push_constant) uniform Push { uint n, k; };
void main() {
    for (uint i = gl_LocalInvocationIndex; i < k; i += 64)
        kept[i] = x[i];
}
