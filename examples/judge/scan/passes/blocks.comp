// Each block adds up for itself: to Y, and what it comes to to Sums.
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) buffer Y { int y[]; };
layout(set = 0, binding = 2) buffer Sums { int sums[]; };
layout(push_constant) uniform Push { uint n; };
shared int s[256];
void main() {
    uint me = gl_LocalInvocationIndex, i = gl_GlobalInvocationID.x;
    s[me] = i < n ? x[i] : 0;
    barrier();
    for (uint step = 1; step < 256; step *= 2) {
        int other = me >= step ? s[me - step] : 0;
        barrier();
        s[me] += other;
        barrier();
    }
    if (i < n)
        y[i] = s[me];
    if (me == 255)
        sums[gl_WorkGroupID.x] = s[255];
}
