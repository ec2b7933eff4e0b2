#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { vec4 x[]; };
layout(set = 0, binding = 1) buffer Y { vec4 y[]; };
layout(push_constant) uniform Push { float a; uint count; };
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < count) {
        y[i] = a * x[i] + y[i];
    }
}
