// partial[g] = the sum of the 256 numbers of workgroup g, by halving in shared memory.
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Partial { float partial[]; };

shared float sums[256];

void main()
{
    uint i = gl_GlobalInvocationID.x;
    uint local = gl_LocalInvocationID.x;
    sums[local] = i < x.length() ? x[i] : 0.0;
    barrier();
    for (uint half_size = 128; half_size > 0; half_size /= 2) {
        if (local < half_size)
            sums[local] += sums[local + half_size];
        barrier();
    }
    if (local == 0 && gl_WorkGroupID.x < partial.length())
        partial[gl_WorkGroupID.x] = sums[0];
}
