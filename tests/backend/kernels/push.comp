#version 450
layout(local_size_x = 1) in;
layout(push_constant) uniform Push { uvec4 a; uvec4 b; uvec4 c; uint d; uint e; uint g; } push;
layout(set = 0, binding = 0) writeonly buffer Out { uint result[]; };
void main() {
    for (int i = 0; i < 4; i++) {
        result[i] = push.a[i];
        result[4 + i] = push.b[i];
        result[8 + i] = push.c[i];
    }
    result[12] = push.d;
    result[13] = push.e;
    result[14] = push.g;
}
