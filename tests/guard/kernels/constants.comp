// Bounds, sizes and arrays from specialization constants.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
layout(constant_id = 0) const uint ROUNDS = 12;
layout(constant_id = 1) const uint WIDTH = 8;
layout(constant_id = 2) const bool ODD = true;
shared uint s[WIDTH * 4];
void main() {
    uint l = gl_LocalInvocationID.x, row[WIDTH];
    for (uint i = 0; i < WIDTH; i++) row[i] = x[(id() + i) & 4095u];
    if (l < WIDTH * 4) s[l] = row[l % WIDTH];
    barrier();
    for (uint r = 0; r < ROUNDS; r++)
        for (uint i = 0; i < WIDTH; i++) {
            row[i] = row[i] * 3u + s[(i + r) % (WIDTH * 4)];
            if (ODD && (row[i] & 1u) == 0u) row[(i + 1u) % WIDTH] += 1u;
        }
    put(row[id() % WIDTH]);
}
