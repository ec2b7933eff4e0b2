#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { uint values[]; } data[2];
void main() { data[0].values[0] = data[gl_WorkGroupID.x].values.length(); }
