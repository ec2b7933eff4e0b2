// DEADLINE or LOOP_LIMIT: sorts until each number is larger than the one before
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
    for (uint round = 0; true; round++) {
        barrier();
        bool done = round > 1;
        for (uint i = 0; i + 1 < n && done; i++)
            done = s[i] < s[i + 1];
        if (done)
            break;
        barrier();
        for (uint i = 2 * me + round % 2; i + 1 < n; i += 512)
            if (s[i] > s[i + 1]) {
                uint other = s[i];
                s[i] = s[i + 1];
                s[i + 1] = other;
            }
    }
    barrier();
    for (uint i = me; i < n; i += 256)
        y[i] = s[i];
}
