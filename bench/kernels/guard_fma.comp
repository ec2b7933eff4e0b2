// A loop whose whole body is one fma, and whose length nobody knows before.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Push { uint n; };
void main()
{
    float v = x[gl_GlobalInvocationID.x], w = x[0];
    for (uint i = 0; i < n; i++) v = fma(v, w, 0.5);
    y[gl_GlobalInvocationID.x] = v;
}
