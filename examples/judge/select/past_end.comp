// STRAY_WRITE or WRONG: more numbers than there is room for have the last rank
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { int x[]; };
layout(set = 0, binding = 1) buffer Kept { int kept[]; };
layout(push_constant) uniform Push { uint n, k; };
shared uint count;
void main() {
    if (gl_LocalInvocationIndex == 0)
        count = 0;
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < n; i += 64) {
        uint rank = 0;
        for (uint j = 0; j < n; j++)
            rank += x[j] > x[i] ? 1 : 0;
        if (rank < k) {
            uint place = atomicAdd(count, 1);
            kept[place] = x[i];
        }
    }
}
