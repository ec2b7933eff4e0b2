#version 450
// A job of a batch: as much arithmetic as it is told, on one invocation, and a number to check.
// Written out: llvmpipe before Mesa 25 ends loops after 65,535 rounds.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) writeonly buffer Out { uint result; };
layout(push_constant) uniform Push { uint seed, rounds; };

// No compiler can shorten it.
#define STEP    value = (value ^ (value >> 15)) * 0x2c1b3c6du + 0x9e3779b9u;
#define STEP_4  STEP STEP STEP STEP
#define STEP_16 STEP_4 STEP_4 STEP_4 STEP_4
#define STEP_64 STEP_16 STEP_16 STEP_16 STEP_16

void main()
{
    uint value = seed;
    for (uint i = 0u; i < rounds; i++) {
        STEP_64 STEP_64 STEP_64 STEP_64
    }
    result = value;
}
