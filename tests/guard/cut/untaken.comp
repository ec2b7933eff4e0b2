#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
// The driver does not skip the branch that no lane takes: the loops in it go round, too.
void main() {
    for (uint i = 0u; i < n / 2u; i++) {
        turns += 1u + (i >> 31);
        if (data[lane() * 2u] == 77u) {
            for (uint j = 0u; j < n; j++) {
                turns += 1u + (j >> 31);
            }
        }
    }
    finish(n / 2u);
}
