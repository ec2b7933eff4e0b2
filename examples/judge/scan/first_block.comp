// WRONG: forgets what is before a block
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) buffer Y { int y[]; };
layout(push_constant) uniform Push { uint n; };
shared int s[256];
void main() {
    uint me = gl_LocalInvocationIndex;
    int before = 0;
    for (uint first = 0; first < n; first += 256) {
        s[me] = first + me < n ? x[first + me] : 0;
        barrier();
        for (uint step = 1; step < 256; step *= 2) {
            int other = me >= step ? s[me - step] : 0;
            barrier();
            s[me] += other;
            barrier();
        }
        if (first + me < n)
            y[first + me] = before + s[me];
        before = 0;
        barrier();
    }
}
