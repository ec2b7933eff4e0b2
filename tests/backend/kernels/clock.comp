#version 450
#extension GL_ARB_shader_clock : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Out { uvec2 ticks; };
void main() { ticks = clock2x32ARB(); }
