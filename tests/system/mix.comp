// out[i] = out[i] * k + in[i], as many times as |rounds| says: run twice, or over data that is half
// written, it gives another value. |rounds| makes it last; llvmpipe 22.3.6 ends an invocation
// after 65,535.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Out { uint data_out[]; };
layout(set = 0, binding = 1) readonly buffer In { uint data_in[]; };
layout(push_constant) uniform Push { uint k, rounds; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i >= data_out.length())
        return;
    uint x = data_out[i];
    for (uint n = 0; n < rounds; n++)
        x = x * k + data_in[i];
    data_out[i] = x;
}
