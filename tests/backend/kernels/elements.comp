#version 450
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) readonly buffer Which { int which[]; };
layout(set = 0, binding = 1) buffer Data { uint sum; uint values[]; } data[3];
layout(set = 0, binding = 2) buffer Out { uint result[]; };
layout(push_constant) uniform P { uint all; };
/* Neighbours take different buffers, in branches and loops that others are not in. */
void main() {
    uint i = gl_GlobalInvocationID.x, got = 0;
    if ((i & 1) == 1) {
        got = data[which[i]].values[i];
        data[which[i]].values[i] = got + 1000;
        atomicAdd(data[which[i]].sum, i);
    } else if (i % 4 == 2) {
        for (uint n = 0; n < i; n++) {
            got += data[(uint(which[i]) + n) % 3].values[2 * n];
        }
    }
    result[i] = got + data[all].values[2 * i];
}
