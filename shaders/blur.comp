// Each number becomes the mean of its neighbours within |radius| in its row; one workgroup a row.
// The row is read into shared memory once: at most 4096 numbers.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Image { float image[]; };
layout(set = 0, binding = 1) writeonly buffer Blurred { float blurred[]; };
layout(push_constant) uniform Push {
    uint width;
    uint radius;
};

shared float row[4096];

void main()
{
    uint start = gl_WorkGroupID.x * width;
    uint count = min(width, 4096u);
    for (uint i = gl_LocalInvocationID.x; i < count; i += 64)
        row[i] = image[start + i];
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < count; i += 64) {
        uint first = i > radius ? i - radius : 0u;
        uint last = min(i + radius, count - 1);
        float sum = 0.0;
        for (uint k = first; k <= last; k++)
            sum += row[k];
        blurred[start + i] = sum / float(last - first + 1);
    }
}
