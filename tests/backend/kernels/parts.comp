#version 450
// Its id in a grid whose size it does not ask for, and that it ran once.
layout(local_size_x = 1) in;
layout(push_constant) uniform Push { uvec3 size; };
layout(set = 0, binding = 0) buffer Out { uint result[]; };
void main() {
    uvec3 id = gl_WorkGroupID;
    if (id != gl_GlobalInvocationID) return;
    uint at = (id.z * size.y + id.y) * size.x + id.x;
    atomicAdd(result[at], at + 1);
}
