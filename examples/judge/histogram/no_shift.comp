// WRONG: a shift of 0
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer H { uint h[]; };
layout(push_constant) uniform Push { uint n, shift; };
shared uint counts[256];
void main() {
    uint me = gl_LocalInvocationIndex;
    counts[me] = 0;
    barrier();
    for (uint i = me; i < n; i += 256)
        atomicAdd(counts[(x[i] + (shift > 255 ? shift : 0)) % 256], 1);
    barrier();
    h[me] = counts[me];
}
