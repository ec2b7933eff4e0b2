#version 450
// Says that it runs, then keeps the device busy for as long as it is told.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) coherent volatile buffer Flag { uint flag; uint sink; };
layout(push_constant) uniform Push { uint iterations; };
void main()
{
    if (gl_WorkGroupID.x == 0u) {
        flag = 1u;
    }
    uint value = gl_WorkGroupID.x + 1u;
    for (uint i = 0u; i < iterations; i++) {
        value = value * 1664525u + 1013904223u;
    }
    if (value == 0x12345678u) {
        sink = value;
    }
}
