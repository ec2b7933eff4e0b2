// square.comp for 16-bit floats, two to a word: no capability is needed for that.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { uint data_in[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint data_out[]; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i >= data_out.length())
        return;
    vec2 pair = unpackHalf2x16(data_in[i]);
    data_out[i] = packHalf2x16(pair * pair);
}
