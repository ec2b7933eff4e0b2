#version 450
// Not atomic on purpose: the sum is right only where each run sees the one before it.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Counter { uint counter; };
void main() { counter = counter + 1u; }
