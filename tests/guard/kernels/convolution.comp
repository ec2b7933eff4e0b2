// 3 by 3, bounds looked at, filter in a constant array.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
const float w[9] = float[](1., 2., 1., 2., 4., 2., 1., 2., 1.);
void main() {
    int px = int(id() % n), py = int(id() / n);
    float sum = 0.0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            int qx = px + dx, qy = py + dy;
            if (qx < 0 || qy < 0 || qx >= int(n) || qy >= int(n)) continue;
            sum += f(uint(qy) * n + uint(qx)) * w[(dy + 1) * 3 + dx + 1];
        }
    put(sum / 16.0);
}
