// As many steps as word 0 says; what comes of them is in word 1.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };

void main()
{
    uint x = 1u;
    const uint steps = data[0];
    for (uint i = 0u; i < steps; i++)
        x = x * 1664525u + 1013904223u;
    if (gl_GlobalInvocationID.x == 0u)
        data[1] = x;
}
