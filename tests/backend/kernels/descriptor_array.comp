#version 450
layout(local_size_x = 1) in;
layout(set = 1, binding = 2) buffer B { uint value; } many[4];
void main() { many[1].value = 1; }
