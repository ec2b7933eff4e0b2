// Hostile: writes far outside its workgroup memory. A software driver that does not check such an
// index takes the worker down with SIGSEGV; where the hardware checks, the write is lost.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };

shared uint scratch[64];

void main()
{
    // Not known at compile time, and far beyond anything mapped.
    uint far = 0x0FFFFF00u + gl_GlobalInvocationID.x * 0x1001u + data.length();
    scratch[far] = data[0];
    barrier();
    data[gl_LocalInvocationID.x % data.length()] = scratch[far + 64];
}
