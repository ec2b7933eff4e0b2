// WRONG: multiplies roots up in half precision
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { vec2 x[]; };
layout(set = 0, binding = 1) buffer Y { vec2 y[]; };
layout(push_constant) uniform Push { uint log, n; int inverse; };
void main() {
    uint first = gl_WorkGroupID.x * n;
    for (uint k = gl_LocalInvocationIndex; k < n; k += 64) {
        vec2 sum = vec2(0), t = vec2(1, 0);
        float angle = (inverse == 1 ? 6.283185307 : -6.283185307) * float(k) / n;
        vec2 root = unpackHalf2x16(packHalf2x16(vec2(cos(angle), sin(angle))));
        for (uint j = 0; j < n; j++) {
            vec2 v = x[first + j];
            sum += vec2(v.x * t.x - v.y * t.y, v.x * t.y + v.y * t.x);
            t = vec2(t.x * root.x - t.y * root.y, t.x * root.y + t.y * root.x);
        }
        y[first + k] = sum;
    }
}
