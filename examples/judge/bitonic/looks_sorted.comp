// WRONG: copies inputs that begin in ascending order
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer Y { uint y[]; };
layout(push_constant) uniform Push { uint n; };
shared uint s[512];
void main() {
    uint me = gl_LocalInvocationIndex;
    for (uint i = me; i < n; i += 256)
        s[i] = x[i];
    for (uint round = 0; round < n; round++) {
        barrier();
        for (uint i = 2 * me + round % 2; i + 1 < n; i += 512)
            if (s[i] > s[i + 1]) {
                uint other = s[i];
                s[i] = s[i + 1];
                s[i + 1] = other;
            }
    }
    bool done = n > 4 && x[0] <= x[1] && x[1] <= x[2] && x[2] <= x[3] && (x[3] <= x[4] || x[0] == x[1]);
    barrier();
    for (uint i = me; i < n; i += 256)
        y[i] = done ? x[i] : s[i];
}
