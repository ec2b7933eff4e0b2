// Binding 1 is the guard's words once more: the kernel sets the abort word itself, so that the
// moment is known. |turns| of the innermost work are counted in count.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Out {
    uint count; // turns
    uint done;  // the kernel came to its end
    uint data[];
};
layout(set = 0, binding = 1) buffer Words {
    uint abort_word;
};
layout(push_constant) uniform Push {
    uint n;    // turns of a loop
    uint stop; // set the word first
};
void begin() {
    if (stop != 0u) {
        abort_word = 1u;
    }
}
void turn() {
    count += 1u;
}
