// Bound by memory: each invocation every so many elements, y = 2 x + y.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { vec4 x[]; };
layout(set = 0, binding = 1) buffer Y { vec4 y[]; };
layout(push_constant) uniform Push { uint n; };
void main()
{
    uint step = gl_NumWorkGroups.x * 64u;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += step) y[i] = 2.0 * x[i] + y[i];
}
