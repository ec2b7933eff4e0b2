// CORRECT: the definition, with a table of the roots
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { vec2 x[]; };
layout(set = 0, binding = 1) buffer Y { vec2 y[]; };
layout(push_constant) uniform Push { uint log, n; int inverse; };
shared vec2 s[1024];
void main() {
    for (uint i = gl_LocalInvocationIndex; i < n; i += 64)
        s[i] = vec2(cos(6.283185307 * i / n), (inverse == 1 ? 1 : -1) * sin(6.283185307 * i / n));
    barrier();
    uint first = gl_WorkGroupID.x * n;
    for (uint k = gl_LocalInvocationIndex; k < n; k += 64) {
        vec2 sum = vec2(0);
        for (uint j = 0; j < n; j++) {
            vec2 t = s[j * k % n], v = x[first + j];
            sum += vec2(v.x * t.x - v.y * t.y, v.x * t.y + v.y * t.x);
        }
        y[first + k] = sum;
    }
}
