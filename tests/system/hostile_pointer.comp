// Writes to an address that it reads from a buffer.
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 1) in;
layout(buffer_reference) buffer Anywhere { uint value; };
layout(set = 0, binding = 0) buffer Data { Anywhere at; };
void main() { at.value = 1; }
