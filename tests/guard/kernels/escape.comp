// Mandelbrot: two conditions, a float and a count.
#version 450
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 32) in;
#include "common.glsl"
void main() {
    vec2 c = vec2(f(id()) / 6.0 - 2.0, f(id() + 77u) / 8.0 - 1.0), z = vec2(0);
    uint i = 0;
    for (; i < n * 4u && dot(z, z) < 4.0; i++) z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
    put(float(i) + z.x);
}
