// WRONG: compares floats, which have 24 bits
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer Y { uint y[]; };
layout(push_constant) uniform Push { uint n; };
shared uint s[512];
void main() {
    uint me = gl_LocalInvocationIndex;
    for (uint i = me; i < 512; i += 256)
        s[i] = i < n ? x[i] : 0xffffffffu;
    for (uint size = 2; size <= 512; size *= 2)
        for (uint step = size / 2; step > 0; step /= 2) {
            barrier();
            for (uint i = me; i < 256; i += 256) {
                uint low = i / step * step * 2 + i % step, high = low + step;
                bool up = (low & size) == 0;
                if ((float(s[low]) > float(s[high])) == up) {
                    uint other = s[low];
                    s[low] = s[high];
                    s[high] = other;
                }
            }
        }
    barrier();
    for (uint i = me; i < n; i += 256)
        y[i] = s[i];
}
