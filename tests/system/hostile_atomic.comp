// A maximum of floats, atomically: few devices have it, and a driver that says nothing crashes.
#version 450
#extension GL_EXT_shader_atomic_float2 : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { float data[]; };
void main() { atomicMax(data[0], 1.0); }
