// Counts the workgroups by their ids, and what does not fit together.
#version 450
layout(local_size_x = 2, local_size_y = 3, local_size_z = 2) in;
layout(set = 0, binding = 0) buffer Out { uint y[]; };
void main()
{
    uvec3 g = gl_WorkGroupID;
    bool fits = gl_GlobalInvocationID == g * gl_WorkGroupSize + gl_LocalInvocationID;
    if (gl_LocalInvocationIndex == 0u) atomicAdd(y[(g.z * 4u + g.y) * 4u + g.x], 1u);
    if (!fits) atomicAdd(y[64], 1u);
}
