#version 450
// As many descriptors as the host says, in one set.
layout(local_size_x = 1) in;
layout(constant_id = 0) const uint STORAGE = 1;
layout(constant_id = 1) const uint UNIFORM = 1;
layout(set = 0, binding = 0) buffer Data { uint value; } data[STORAGE];
layout(set = 0, binding = 1) uniform Term { uvec4 term; } terms[UNIFORM];
void main() { data[0].value += terms[UNIFORM - 1].term.x; }
