// Tells what workgroup memory holds that it has not written.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Words { uint words[]; };
shared uint unwritten[64];
void main()
{
    words[gl_LocalInvocationIndex] = unwritten[gl_LocalInvocationIndex];
}
