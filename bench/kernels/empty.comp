#version 450
// Nothing: what remains is the cost of getting here and back.
layout(local_size_x = 1) in;
void main() {}
