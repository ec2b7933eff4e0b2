#version 450
// Workgroup size and values from specialization constants.
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z = 2) in;
layout(constant_id = 2) const uint factor = 3;
layout(constant_id = 3) const bool flag = false;
layout(constant_id = 4) const float scale = 1.5;
layout(set = 0, binding = 0) buffer Out { uint result[]; };
void main() {
    uint count = gl_WorkGroupSize.x * gl_WorkGroupSize.y * gl_WorkGroupSize.z;
    result[4 + gl_LocalInvocationIndex] = factor * gl_LocalInvocationIndex;
    if (gl_LocalInvocationIndex == 0) {
        result[0] = gl_WorkGroupSize.x;
        result[1] = gl_WorkGroupSize.y;
        result[2] = flag ? 1 : 0;
        result[3] = floatBitsToUint(scale * float(count));
    }
}
