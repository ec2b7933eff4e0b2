#version 450
// Undecorated, as compilers leave it: the code says what is written.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Counter { uint count; };
void main() { count += 1; }
