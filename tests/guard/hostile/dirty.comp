// Leaves something in all of its workgroup memory.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Out { uint y[]; };
shared uint all[8192];
void main()
{
    for (uint i = gl_LocalInvocationIndex; i < 8192; i += 64) all[i] = 0xdeadbeef;
    barrier();
    y[gl_LocalInvocationIndex] = all[8191 - gl_LocalInvocationIndex];
}
