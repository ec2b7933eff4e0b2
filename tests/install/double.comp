#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Values { uint values[]; };
void main() { values[gl_GlobalInvocationID.x] *= 2u; }
