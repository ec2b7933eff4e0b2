// The sum of the first words, by one workgroup: the fewer invocations it has, the longer its loops.
#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint many = 100000;
layout(set = 0, binding = 0) buffer Data { uint sum; uint data[]; };
void main() {
    uint mine = 0;
    for (uint i = gl_LocalInvocationIndex; i < many; i += gl_WorkGroupSize.x) mine += data[i];
    atomicAdd(sum, mine * gl_NumWorkGroups.x); // one; it is read so that the guard has a constant, too
}
