// counts[v mod 256] for each v: first in shared memory, then added to the buffer atomically.
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer Values { uint values[]; };
layout(set = 0, binding = 1) buffer Counts { uint counts[256]; };

shared uint local_counts[256];

void main()
{
    uint i = gl_GlobalInvocationID.x;
    uint local = gl_LocalInvocationID.x;
    local_counts[local] = 0;
    barrier();
    if (i < values.length())
        atomicAdd(local_counts[values[i] & 255], 1);
    barrier();
    if (local_counts[local] != 0)
        atomicAdd(counts[local], local_counts[local]);
}
