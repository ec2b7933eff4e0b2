#version 450
// Sets 0, 2 and 3, with gaps in each; uniform buffers among them.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer A { uint a; };
layout(set = 0, binding = 3) readonly buffer B { uint b; };
layout(set = 0, binding = 700) readonly buffer C { uint c; };
layout(set = 2, binding = 1) buffer Out { uint result[]; };
layout(set = 3, binding = 5) uniform U { uvec4 u; } factors;
layout(set = 3, binding = 6) uniform V { uint v; };
layout(set = 3, binding = 9) buffer Unused { uint never[]; };
void main() {
    result[0] = a + 10 * b + 100 * c;
    result[1] = factors.u.x + factors.u.w;
    result[2] = v;
}
