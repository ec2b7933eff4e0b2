// Reads workgroup memory that it has not written.
#version 450
layout(local_size_x = 8, local_size_y = 4) in;
layout(set = 0, binding = 0) buffer Out { uint y[]; };
struct Part { uvec3 v; uint a[3]; mat2 m; bool b[2]; };
shared uint single;
shared uint many[1000];
shared Part parts[5][3];
void main()
{
    uint l = gl_LocalInvocationIndex;
    uint sum = single;
    for (uint i = l; i < 1000; i += 32) sum |= many[i];
    for (uint i = 0; i < 5; i++) {
        for (uint j = 0; j < 3; j++) {
            Part p = parts[i][j];
            sum |= p.v.x | p.v.y | p.v.z | p.a[0] | p.a[1] | p.a[2];
            sum |= floatBitsToUint(p.m[0].x) | floatBitsToUint(p.m[1].y);
            sum |= uint(p.b[0]) | uint(p.b[1]);
        }
    }
    y[l] = sum + 1u;
}
