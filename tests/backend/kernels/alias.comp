#version 450
// Three views of one buffer, as real kernels have them.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer F { float f[]; };
layout(set = 0, binding = 0) readonly buffer U4 { uvec4 u4[]; };
layout(set = 0, binding = 1) buffer Out { uint result[]; };
layout(set = 0, binding = 1) buffer OutF { float result_f[]; };
void main() {
    result[0] = u4[0].y;
    result_f[1] = f[2] * 2.0;
}
