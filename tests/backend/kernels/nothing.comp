#version 450
// Binds nothing, takes nothing.
layout(local_size_x = 1) in;
void main() {}
