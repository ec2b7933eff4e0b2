// How many steps each point of [-2, 0.5] x [-1.25, 1.25] takes to leave the circle of radius 2.
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) writeonly buffer Steps { uint steps[]; };
layout(push_constant) uniform Push {
    uint width;
    uint height;
    uint limit;
};

void main()
{
    uvec2 at = gl_GlobalInvocationID.xy;
    if (at.x >= width || at.y >= height)
        return;
    vec2 c = vec2(-2.0, -1.25) + 2.5 * (vec2(at) + 0.5) / vec2(width, height);
    vec2 z = vec2(0.0);
    uint n = 0;
    while (n < limit && dot(z, z) <= 4.0) {
        z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        n++;
    }
    steps[at.y * width + at.x] = n;
}
