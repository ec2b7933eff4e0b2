// Reads private memory that it has not written.
#version 450
layout(local_size_x = 8) in;
layout(set = 0, binding = 0) buffer Out { uint y[]; };
struct Part { uvec3 v; uint a[3]; mat2 m; };
uint single;
Part parts[2];
uint many[200];
uint kept = 5u;
uint fresh(uint i)
{
    uint x;
    if (i == 100u) x = 0u;
    uint was = x;
    x = 0u;
    return was;
}
void main()
{
    uint l = gl_LocalInvocationIndex, number, last = 0u;
    Part part;
    uint some[70];
    vec2 pair;
    if (l == 100u) { /* or an optimiser knows that they have no value */
        single = number = l;
        pair = vec2(l);
        some[l % 70u] = l;
        part.v[l % 3u] = l;
        part.a[l % 3u] = l;
        part.m[l % 2u] = pair;
        many[l] = l;
    }
    y[0] = single;
    y[1] = parts[l / 8u].v.x;
    y[2] = parts[1].a[2];
    y[3] = floatBitsToUint(parts[1].m[1].y);
    y[4] = many[l / 8u];
    y[5] = many[199u + l / 8u];
    y[6] = number;
    y[7] = floatBitsToUint(pair.y);
    y[8] = some[l / 8u];
    y[9] = some[69u + l / 8u];
    y[10] = part.v[2u + l / 8u];
    y[11] = part.a[l / 8u];
    y[12] = floatBitsToUint(part.m[l / 8u].x);
    y[13] = fresh(l);
    y[14] = fresh(l);
    y[15] = kept - 5u;
    for (uint i = 0u; i < 3u; i++) { /* a loop makes no new one */
        uint sum;
        if (i == 0u) sum = 5u; else sum += 1u;
        last = sum;
    }
    y[16] = last - 7u;
}
