// The reference: each sum as the definition says, in one direction or the other.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { vec2 x[]; };
layout(set = 0, binding = 1) buffer Y { vec2 y[]; };
layout(push_constant) uniform Push { uint log, n; int inverse; };
void main() {
    uint first = gl_WorkGroupID.x * n;
    for (uint k = gl_LocalInvocationIndex; k < n; k += 64) {
        vec2 sum = vec2(0);
        for (uint j = 0; j < n; j++) {
            float angle = (inverse == 1 ? 6.283185307 : -6.283185307) * float(j * k % n) / n;
            vec2 t = vec2(cos(angle), sin(angle)), v = x[first + j];
            sum += vec2(v.x * t.x - v.y * t.y, v.x * t.y + v.y * t.x);
        }
        y[first + k] = sum;
    }
}
