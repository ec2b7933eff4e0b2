/* The kernels of a run on a CUDA device, as PTX: the same as those for Vulkan (shaders/), and one that
 * writes where it may not. */
#include "chaos/engine/kernels.h"

const char bhi_chaos_image[] =
    ".version 5.0\n"
    ".target sm_60\n"
    ".address_size 64\n"
    /* As shaders/chaos_work.comp. */
    ".visible .entry chaos_work(\n"
    "    .param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 result,\n"
    "    .param .u32 words, .param .u32 inputs, .param .u32 multiplier, .param .u32 addend,\n"
    "    .param .u32 shift, .param .u32 rounds)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .u32 %i, %n, %v, %x, %y, %m, %r;\n"
    "    .reg .u64 %at, %offset;\n"
    "    mov.u32 %i, %ctaid.x;\n"
    "    mov.u32 %n, %ntid.x;\n"
    "    mov.u32 %v, %tid.x;\n"
    "    mad.lo.u32 %i, %i, %n, %v;\n"
    "    ld.param.u32 %n, [words];\n"
    "    setp.ge.u32 %p, %i, %n;\n"
    "    @%p bra DONE;\n"
    "    mul.wide.u32 %offset, %i, 4;\n"
    "    mov.u32 %x, 0;\n"
    "    ld.param.u32 %n, [inputs];\n"
#define ADD(input, number)                                                                         \
    "    setp.le.u32 %p, %n, " number ";\n"                                                        \
    "    @%p bra ADDED;\n"                                                                         \
    "    ld.param.u64 %at, [" input "];\n"                                                         \
    "    add.u64 %at, %at, %offset;\n"                                                             \
    "    ld.u32 %v, [%at];\n"                                                                      \
    "    add.u32 %x, %x, %v;\n"
    ADD("a", "0") ADD("b", "1") ADD("c", "2")
        ADD("d", "3") "ADDED:\n"
                      "    mov.u32 %m, 0x9e3779b9;\n"
                      "    mul.lo.u32 %y, %i, %m;\n"
                      "    ld.param.u32 %v, [shift];\n"
                      "    shf.l.wrap.b32 %y, %y, %y, %v;\n"
                      "    ld.param.u32 %m, [multiplier];\n"
                      "    ld.param.u32 %v, [addend];\n"
                      "    ld.param.u32 %n, [rounds];\n"
                      "    mov.u32 %r, 0;\n"
                      "NEXT:\n"
                      "    setp.ge.u32 %p, %r, %n;\n"
                      "    @%p bra STORE;\n"
                      "    mad.lo.u32 %x, %x, %m, %v;\n"
                      "    xor.b32 %x, %x, %y;\n"
                      "    add.u32 %r, %r, 1;\n"
                      "    bra NEXT;\n"
                      "STORE:\n"
                      "    ld.param.u64 %at, [result];\n"
                      "    add.u64 %at, %at, %offset;\n"
                      "    st.u32 [%at], %x;\n"
                      "DONE:\n"
                      "    ret;\n"
                      "}\n"
                      /* Does not end: it waits for a number that nobody writes. */
                      ".visible .entry chaos_hang(.param .u64 data)\n"
                      "{\n"
                      "    .reg .pred %p;\n"
                      "    .reg .u32 %v;\n"
                      "    .reg .u64 %at;\n"
                      "    ld.param.u64 %at, [data];\n"
                      "AGAIN:\n"
                      "    ld.volatile.u32 %v, [%at];\n"
                      "    setp.ne.u32 %p, %v, 0x600D600D;\n"
                      "    @%p bra AGAIN;\n"
                      "    ret;\n"
                      "}\n"
                      /* Writes where no memory is. */
                      ".visible .entry chaos_illegal(.param .u64 data)\n"
                      "{\n"
                      "    .reg .u32 %v;\n"
                      "    .reg .u64 %at;\n"
                      "    mov.u64 %at, 16;\n"
                      "    mov.u32 %v, 1;\n"
                      "    st.global.u32 [%at], %v;\n"
                      "    ret;\n"
                      "}\n";
const size_t bhi_chaos_image_size = sizeof bhi_chaos_image;
