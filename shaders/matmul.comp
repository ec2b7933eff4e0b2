// C[m][n] = A[m][k] * B[k][n], row-major, through tiles in shared memory.
// Groups: (n + TILE - 1) / TILE, (m + TILE - 1) / TILE. The tile's side is constant 0.
#version 450
layout(local_size_x = 16, local_size_x_id = 0, local_size_y = 16, local_size_y_id = 0) in;
layout(constant_id = 0) const uint TILE = 16;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Push {
    uint m;
    uint n;
    uint k;
};

shared float tile_a[TILE * TILE];
shared float tile_b[TILE * TILE];

void main()
{
    uint column = gl_GlobalInvocationID.x;
    uint row = gl_GlobalInvocationID.y;
    uint x = gl_LocalInvocationID.x;
    uint y = gl_LocalInvocationID.y;
    float sum = 0.0;
    for (uint start = 0; start < k; start += TILE) {
        bool in_a = row < m && start + x < k;
        bool in_b = start + y < k && column < n;
        tile_a[y * TILE + x] = in_a ? a[row * k + start + x] : 0.0;
        tile_b[y * TILE + x] = in_b ? b[(start + y) * n + column] : 0.0;
        barrier();
        for (uint i = 0; i < TILE; i++)
            sum += tile_a[y * TILE + i] * tile_b[i * TILE + x];
        barrier();
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}
