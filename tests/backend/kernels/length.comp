#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer In { uint values[]; };
layout(set = 0, binding = 1) buffer Out { uint result[]; };
layout(set = 0, binding = 2) buffer Empty { uint nothing[]; };
void main() {
    result[0] = values.length();
    result[1] = nothing.length();
    nothing[0] = 7;
}
