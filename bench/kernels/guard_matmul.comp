// Naive tiled matrix product, n by n, tiles of 16 in shared memory.
#version 450
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) buffer C { float c[]; };
layout(push_constant) uniform Push { uint n; };
shared float tile_a[16][16], tile_b[16][16];
void main()
{
    uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
    uint column = gl_GlobalInvocationID.x, row = gl_GlobalInvocationID.y;
    float sum = 0.0;
    for (uint start = 0; start < n; start += 16) {
        tile_a[y][x] = a[row * n + start + x];
        tile_b[y][x] = a[(start + y) * n + column];
        barrier();
        for (uint i = 0; i < 16; i++) sum += tile_a[y][i] * tile_b[i][x];
        barrier();
    }
    c[row * n + column] = sum;
}
