#version 450
// As long as it is asked to be, and never idle for memory.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) readonly buffer Length { uint iterations; };
layout(set = 0, binding = 2) buffer Z { float z[]; };
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i >= uint(x.length())) {
        return;
    }
    float sum = x[i];
    for (uint k = 0u; k < iterations; k++) {
        sum = sum * 0.999 + 0.37;
    }
    z[i] = sum;
}
