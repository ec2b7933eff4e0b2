// Each lane counts its turns, and knows how many they should be.
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) buffer Out {
    uint data[];
};
layout(push_constant) uniform Push {
    uint n;
    uint unused;
};
uint turns = 0u;
uint lane() {
    return gl_LocalInvocationID.x;
}
void finish(uint expected) {
    data[lane() * 2u] = turns;
    data[lane() * 2u + 1u] = expected;
}
