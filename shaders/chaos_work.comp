// What `bulkhead chaos` runs: arithmetic on whole words whose result anybody can compute anew.
// chaos/history/history.h says what comes out.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) readonly buffer B { uint b[]; };
layout(set = 0, binding = 2) readonly buffer C { uint c[]; };
layout(set = 0, binding = 3) readonly buffer D { uint d[]; };
layout(set = 0, binding = 4) writeonly buffer Result { uint result[]; };
layout(push_constant) uniform Push { uint words, inputs, multiplier, addend, shift, rounds; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i >= words)
        return;
    uint x = 0u;
    if (inputs > 0u)
        x += a[i];
    if (inputs > 1u)
        x += b[i];
    if (inputs > 2u)
        x += c[i];
    if (inputs > 3u)
        x += d[i];
    uint y = i * 0x9e3779b9u;
    y = (y << (shift & 31u)) | (y >> ((32u - shift) & 31u));
    for (uint round = 0u; round < rounds; round++)
        x = (x * multiplier + addend) ^ y;
    result[i] = x;
}
