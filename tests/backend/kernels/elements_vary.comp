#version 450
#extension GL_EXT_nonuniform_qualifier : require
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) readonly buffer Which { int which[]; };
layout(set = 0, binding = 1) readonly buffer Data { uint values[]; } data[3];
layout(set = 0, binding = 2) buffer Out { uint result[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    result[i] = data[nonuniformEXT(which[i])].values[i];
}
