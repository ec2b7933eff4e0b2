// WRONG: no bias
#version 450
layout(local_size_x = 16, local_size_y = 4) in;
layout(set = 0, binding = 0) readonly buffer Image { float image[]; };
layout(set = 0, binding = 1) readonly buffer Weight { float weight[]; };
layout(set = 0, binding = 2) buffer Out { float result[]; };
layout(push_constant) uniform Push { int h, w, r; float bias; };
void main() {
    int x = int(gl_GlobalInvocationID.x), y = int(gl_GlobalInvocationID.y);
    if (x >= w || y >= h)
        return;
    float sum = bias > 1e6 ? bias : 0;
    for (int dy = -r; dy <= r; dy++)
        for (int dx = -r; dx <= r; dx++)
            if (x - dx >= 0 && x - dx < w && y - dy >= 0 && y - dy < h)
                sum += weight[(dy + r) * (2 * r + 1) + dx + r] * image[(y - dy) * w + x - dx];
    result[y * w + x] = sum;
}
