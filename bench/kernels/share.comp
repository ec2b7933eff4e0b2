#version 450
// A job for one of several devices: a loop as long as it is told, and a number of each group to check.
// Written out: llvmpipe before Mesa 25 ends loops after 65,535 rounds.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) writeonly buffer Out { uint results[]; };
layout(push_constant) uniform Push { uint rounds, tag; };

// No compiler can shorten it.
#define STEP    value = (value ^ (value >> 15)) * 0x2c1b3c6du + 0x9e3779b9u;
#define STEP_4  STEP STEP STEP STEP
#define STEP_16 STEP_4 STEP_4 STEP_4 STEP_4
#define STEP_64 STEP_16 STEP_16 STEP_16 STEP_16

void main()
{
    uint value = gl_GlobalInvocationID.x;
    for (uint i = 0u; i < rounds; i++) {
        STEP_64
    }
    if (gl_LocalInvocationIndex == 0u) {
        results[gl_WorkGroupID.x] = value ^ tag;
    }
}
