// CORRECT: bounds before the loops
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
    float sum = 0;
    for (int i = max(0, y - r); i <= min(h - 1, y + r); i++)
        for (int j = max(0, x - r); j <= min(w - 1, x + r); j++)
            sum = fma(weight[(y - i + r) * (2 * r + 1) + x - j + r], image[i * w + j], sum);
    result[y * w + x] = sum + bias;
}
