#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 1) in;
layout(buffer_reference) buffer Anywhere { uint value; };
layout(push_constant) uniform Push { Anywhere at; };
void main() { at.value = 1; }
