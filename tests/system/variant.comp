// words[at] = VALUE: each value is a kernel of its own.
#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const uint VALUE = 1;
layout(set = 0, binding = 0) buffer Words { uint words[]; };
layout(push_constant) uniform Push { uint at; };

void main()
{
    words[at] = VALUE;
}
