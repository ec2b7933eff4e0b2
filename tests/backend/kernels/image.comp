#version 450
layout(local_size_x = 1) in;
layout(set = 1, binding = 4, r32f) uniform image2D picture;
void main() { imageStore(picture, ivec2(0), vec4(1)); }
