// Hostile: does not end. The loop waits for a number that nobody writes; where a driver cuts a
// loop short after some tens of thousands of steps, many workgroups, each with a heavy body,
// still take longer than any deadline.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };

void main()
{
    float x = float(gl_GlobalInvocationID.x);
    while (data[0] != 0x600D600Du) {
        for (uint i = 0; i < 60000u && data[0] != 0x600D600Du; i++)
            x = fract(sin(x) * 43758.5453) + sqrt(abs(cos(x))) + float(data[i % data.length()]);
    }
    data[1 % data.length()] = floatBitsToUint(x);
}
