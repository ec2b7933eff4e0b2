#version 450
// A sum as one writes it by hand: each workgroup leaves the sum of 16,384 elements. A second pass adds up
// what the first leaves.
layout(local_size_x = 256) in;
layout(set = 0, binding = 0, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push { uint count; };
shared float sums[256];

void main() {
    const uint own = gl_LocalInvocationID.x, first = gl_WorkGroupID.x * 16384u + own;
    float sum = 0.0;
    for (uint k = 0u; k < 64u; k++) {
        const uint i = first + k * 256u;
        if (i < count) {
            sum += x[i];
        }
    }
    sums[own] = sum;
    barrier();
    for (uint half_ = 128u; half_ > 0u; half_ >>= 1) {
        if (own < half_) {
            sums[own] += sums[own + half_];
        }
        barrier();
    }
    if (own == 0u) {
        y[gl_WorkGroupID.x] = sums[0];
    }
}
