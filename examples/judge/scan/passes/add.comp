// Each block adds what is before it.
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) buffer Y { int y[]; };
layout(set = 0, binding = 1) readonly buffer Before { int before[]; };
layout(push_constant) uniform Push { uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n)
        y[i] += before[gl_WorkGroupID.x];
}
