#version 450
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) buffer Out { float result[]; };
shared float scratch[1 << 18];
void main() {
    scratch[gl_LocalInvocationIndex] = 1.0;
    barrier();
    result[0] = scratch[31 - gl_LocalInvocationIndex];
}
