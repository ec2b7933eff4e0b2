#version 450
// All of the workgroup memory that is asked for, in a loop of unknown length.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint COUNT = 1;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
shared uint scratch[COUNT];
void main() {
    uint sum = 0;
    for (uint i = gl_LocalInvocationIndex; i < data[0]; i += 64)
        scratch[i] = i + 1;
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < data[0]; i += 64)
        sum += scratch[data[0] - 1 - i];
    data[1 + gl_LocalInvocationIndex] = sum;
}
