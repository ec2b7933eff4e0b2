#version 450
// Which of a grid's workgroups have run: the first, the last, and whether NumWorkgroups is right.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, std430) buffer Marks {
    uint first;
    uint last;
    uint wrong;
    uint x, y, z; // the grid, as the host knows it
};
void main() {
    if (gl_WorkGroupID == uvec3(0)) {
        first = 1u;
        wrong = gl_NumWorkGroups == uvec3(x, y, z) ? 0u : 1u;
    }
    if (gl_WorkGroupID == gl_NumWorkGroups - 1u)
        last = 1u;
}
