// Runs until the host writes 0x600D600D into word 0, and says in word 1 that it runs.
// An atomic, because a plain load may be moved out of the loop.
// llvmpipe 22.3.6 ends each invocation after 65,535 iterations: there are many invocations.
// A workgroup narrower than llvmpipe's vectors would not see the gate open: the lanes that are not
// there keep a loop alive whose exit depends on an atomic.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Gate { uint word[]; };

void main()
{
    word[1] = 1u;
    while (atomicOr(word[0], 0u) != 0x600D600Du)
        ;
}
