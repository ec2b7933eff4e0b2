#version 450
layout(local_size_x = 2, local_size_y = 3, local_size_z = 1) in;
layout(set = 0, binding = 0) buffer Out { uint result[]; };
void main() {
    uvec3 size = gl_NumWorkGroups * gl_WorkGroupSize;
    uvec3 id = gl_GlobalInvocationID;
    result[(id.z * size.y + id.y) * size.x + id.x] = id.x + 100 * id.y + 10000 * id.z;
}
