// Hostile: does not end, like hang.comp; its loops go by how many workgroups there are.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };

void main()
{
    float x = float(gl_GlobalInvocationID.x);
    for (uint i = gl_WorkGroupID.x; data[0] != 0x600D600Du; i += gl_NumWorkGroups.x) {
        for (uint j = 0; j < 60000u && data[0] != 0x600D600Du; j++)
            x = fract(sin(x) * 43758.5453) + float(data[(i + j * gl_NumWorkGroups.y) % data.length()]);
    }
    data[1 % data.length()] = floatBitsToUint(x);
}
