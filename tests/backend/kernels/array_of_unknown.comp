#version 450
#extension GL_EXT_nonuniform_qualifier : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { uint value; } data[];
void main() { data[gl_WorkGroupID.x].value = 1; }
