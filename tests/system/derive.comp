// out[i] = in[i] * k + i: overwrites, and reads nothing of what was there.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) writeonly buffer Out { uint data_out[]; };
layout(set = 0, binding = 1) readonly buffer In { uint data_in[]; };
layout(push_constant) uniform Push { uint k; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < data_out.length() && i < data_in.length())
        data_out[i] = data_in[i] * k + i;
}
