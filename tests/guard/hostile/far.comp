// Every index that no buffer bounds, far out of range. Guarded, each is the last element.
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Out { uint y[]; };
layout(push_constant) uniform Push { uint far; int below; uint table[6]; };
layout(constant_id = 0) const uint WIDTH = 8;
shared uint group[16];
shared uvec3 vectors[2][5];
shared uint spec[WIDTH];
uint global[9];
void main()
{
    uint local[7];
    uvec4 v = uvec4(1, 2, 3, 4);
    for (uint i = 0; i < 16; i++) group[i] = 100 + i;
    for (uint i = 0; i < 9; i++) global[i] = 200 + i;
    for (uint i = 0; i < 7; i++) local[i] = 300 + i;
    for (uint i = 0; i < WIDTH; i++) spec[i] = 400 + i;
    vectors[1][4] = uvec3(7, 8, 9);
    group[far] = 1;
    global[far + 1] = 2;
    local[below] = 3;
    spec[far * 3] = 4;
    vectors[far][far + 7][far] = 5;
    v[far] = 6;
    y[0] = group[15];
    y[1] = group[below];
    y[2] = global[8];
    y[3] = global[below];
    y[4] = local[6];
    y[5] = local[far];
    y[6] = spec[WIDTH - 1];
    y[7] = vectors[1][4].z;
    y[8] = vectors[below][far].y;
    y[9] = v.w;
    y[10] = v[below];
    y[11] = table[far];
    y[12] = group[3];
}
