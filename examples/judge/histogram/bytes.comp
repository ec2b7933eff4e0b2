// WRONG: four counts of eight bits in a word, which is enough for random inputs
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer H { uint h[]; };
layout(push_constant) uniform Push { uint n, shift; };
shared uint counts[64];
void main() {
    uint me = gl_LocalInvocationIndex;
    if (me < 64)
        counts[me] = 0;
    barrier();
    for (uint i = me; i < n; i += 256) {
        uint value = (x[i] + shift) % 256;
        atomicAdd(counts[value / 4], 1u << value % 4 * 8);
    }
    barrier();
    h[me] = counts[me / 4] >> me % 4 * 8 & 255;
}
