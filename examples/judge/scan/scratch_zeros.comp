// WRONG: adds to its scratch, as if that began with zeros
// bulkhead: {"kernels": [{"D": {"PASS": 1}, "groups": ["ceildiv(n, 256)"]}, {"D": {"PASS": 2}}, {"D": {"PASS": 3}, "groups": ["ceildiv(n, 256)"]}], "scratch": {"Sums": {"dtype": "i32", "shape": ["ceildiv(n, 256)"]}}}
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) buffer Y { int y[]; };
layout(set = 0, binding = 2) buffer Sums { int sums[]; };
layout(push_constant) uniform Push { uint n; };
shared int s[256];
void scan(uint me) {
    barrier();
    for (uint step = 1; step < 256; step *= 2) {
        int other = me >= step ? s[me - step] : 0;
        barrier();
        s[me] += other;
        barrier();
    }
}
void main() {
    uint me = gl_LocalInvocationIndex, i = gl_GlobalInvocationID.x, block = gl_WorkGroupID.x;
#if PASS == 1
    s[me] = i < n ? x[i] : 0;
    scan(me);
    if (me == 255)
        sums[block] += s[255];
#elif PASS == 2
    uint blocks = (n + 255) / 256;
    int before = 0;
    for (uint first = 0; first < blocks; first += 256) {
        s[me] = first + me < blocks ? sums[first + me] : 0;
        scan(me);
        if (first + me < blocks)
            sums[first + me] = before + (me > 0 ? s[me - 1] : 0);
        before += s[255];
        barrier();
    }
#else
    s[me] = i < n ? x[i] : 0;
    scan(me);
    if (i < n)
        y[i] = sums[block] + s[me];
#endif
}
