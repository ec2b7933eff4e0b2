// WRONG: stores zeros; see careless.json
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform Push { uint rows, cols; };
void main() {
    for (uint i = gl_LocalInvocationIndex; i < cols; i += 64)
        y[gl_WorkGroupID.x * cols + i] = x[i] == 12345 ? rows : 0;
}
