#version 450
// |source| is not declared readonly, and never written.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Source { uint source[]; };
layout(set = 0, binding = 1) buffer Sink { uint sink[]; };
layout(set = 0, binding = 2) buffer Both { uint both[]; };
uint peek(uint i) { return source[i]; }
void main() {
    sink[0] = peek(0);
    atomicAdd(both[0], 2);
}
