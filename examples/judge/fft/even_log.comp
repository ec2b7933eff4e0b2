// WRONG: radix 4, and nothing for what is left if log is odd
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { vec2 x[]; };
layout(set = 0, binding = 1) buffer Y { vec2 y[]; };
layout(push_constant) uniform Push { uint log, n; int inverse; };
shared vec2 s[1024];
void main() {
    uint first = gl_WorkGroupID.x * n, me = gl_LocalInvocationIndex;
    for (uint i = me; i < n; i += 64)
        s[bitfieldReverse(i) >> 32 - log] = x[first + i];
    for (uint span = 1; span < n >> log % 2; span *= 2) {
        barrier();
        for (uint i = me; i < n / 2; i += 64) {
            uint low = i / span * span * 2 + i % span;
            float angle = (inverse == 1 ? 3.1415926535 : -3.1415926535) * float(i % span) / span;
            vec2 t = vec2(cos(angle), sin(angle)), a = s[low], b = s[low + span];
            b = vec2(b.x * t.x - b.y * t.y, b.x * t.y + b.y * t.x);
            s[low] = a + b;
            s[low + span] = a - b;
        }
    }
    barrier();
    for (uint i = me; i < n; i += 64)
        y[first + i] = s[i];
}
