// c = a + b, on integers
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { int a[]; };
layout(set = 0, binding = 1) readonly buffer B { int b[]; };
layout(set = 0, binding = 2) writeonly buffer C { int c[]; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < a.length() && i < b.length() && i < c.length())
        c[i] = a[i] + b[i];
}
