// What square.comp binds, and another result.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { float data_in[]; };
layout(set = 0, binding = 1) writeonly buffer Out { float data_out[]; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < data_out.length())
        data_out[i] = 2.0 * data_in[i];
}
