/* Everything that is refused: the status, the command, and a text that says what to mend. */
#include "rig.h"
#include "worker/vulkan/backend.h"

#include <spirv/unified1/spirv.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define KERNEL(name) static const uint32_t name[] =
KERNEL(places)
#include "kernels/places.inc"
    ;
KERNEL(add)
#include "kernels/add.inc"
    ;
KERNEL(undecorated)
#include "kernels/undecorated.inc"
    ;
KERNEL(saxpy)
#include "kernels/saxpy.inc"
    ;
KERNEL(spec)
#include "kernels/spec.inc"
    ;
KERNEL(pointers)
#include "kernels/pointers.inc"
    ;
KERNEL(array_of_unknown)
#include "kernels/array_of_unknown.inc"
    ;
KERNEL(clock_reader)
#include "kernels/clock.inc"
    ;
KERNEL(image)
#include "kernels/image.inc"
    ;
KERNEL(sampler)
#include "kernels/sampler.inc"
    ;
KERNEL(big_push)
#include "kernels/big_push.inc"
    ;
KERNEL(big_shared)
#include "kernels/big_shared.inc"
    ;
KERNEL(kind_clash)
#include "kernels/kind_clash.inc"
    ;
KERNEL(vertex)
#include "kernels/vertex.inc"
    ;

static void refused_kernel(const uint32_t *code, size_t bytes, const char *entry, bh_status status,
                           const char *text) {
    struct rig rig;
    rig_open(&rig, NULL);
    rig_kernel_entry(&rig, 1, code, bytes, entry, NULL, 0);
    for (int twice = 0; twice < 2; twice++) { /* it stays refused, with the same text */
        rig_begin(&rig);
        rig_prepare(&rig, 1);
        rig_run_fails(&rig, status, 0, text);
    }
    struct bhi_msg_kernel_info info;
    static struct bhi_msg_kernel_binding bindings[256];
    BHT_TRUE(!bhi_backend_next_reflection(rig.backend, &info, bindings));
    rig_close(&rig);
}

static void kernels_out_of_scope(void) {
    refused_kernel(CODE(pointers), "main", BH_INVALID_KERNEL, "physical storage buffer pointers");
    refused_kernel(CODE(clock_reader), "main", BH_INVALID_KERNEL,
                   "capability ShaderClockKHR (5055) is not supported");
    refused_kernel(CODE(array_of_unknown), "main", BH_INVALID_KERNEL,
                   "capability RuntimeDescriptorArray (5302) is not supported");
    refused_kernel(
        CODE(image), "main", BH_INVALID_KERNEL,
        "set 1 binding 4 (\"picture\") is a storage image or texel buffer; storage images "
        "and samplers are out of scope");
    refused_kernel(CODE(sampler), "main", BH_INVALID_KERNEL,
                   "set 0 binding 6 (\"lookup\") is a combined image sampler");
    refused_kernel(CODE(kind_clash), "main", BH_INVALID_KERNEL,
                   "set 0 binding 0 is a storage buffer (\"S\") and a uniform buffer (\"U\")");
}

static void entry_points(void) {
    refused_kernel(CODE(add), "mane", BH_INVALID_KERNEL, "there is no entry point \"mane\"");
    refused_kernel(CODE(vertex), "main", BH_INVALID_KERNEL,
                   "entry point \"main\" is not for compute (execution model Vertex)");
}

static void kernels_over_limits(void) {
    refused_kernel(CODE(big_push), "main", BH_LIMIT_EXCEEDED, "maxPushConstantsSize");
    refused_kernel(CODE(big_push), "main", BH_LIMIT_EXCEEDED, "bytes of push constants: 1024");
    refused_kernel(
        CODE(big_shared), "main", BH_LIMIT_EXCEEDED,
        "bytes of shared memory: 1048576, the device allows 32768 (maxComputeSharedMemorySize)");

    for (size_t i = 0; i < 3; i++) {
        struct rig rig;
        rig_open(&rig, NULL);
        const uint32_t *most = rig.backend->device.limits.maxComputeWorkGroupSize;
        char invocations[64];
        snprintf(invocations, sizeof invocations, "invocations in a workgroup: %u",
                 most[0] * most[1] * 2);
        const struct {
            uint32_t x, y;
            const char *text;
        } sizes[] = {
            {1u << 20, 1, "workgroup size in x: 1048576"},
            {1, 1u << 20, "workgroup size in y: 1048576"},
            {most[0], most[1], invocations},
        };
        const struct bhi_spec_constant constants[] = {{0, 4, sizes[i].x}, {1, 4, sizes[i].y}};
        rig_kernel_entry(&rig, 1, CODE(spec), "main", constants, 2);
        rig_begin(&rig);
        rig_prepare(&rig, 1);
        rig_run_fails(&rig, BH_LIMIT_EXCEEDED, 0, sizes[i].text);
        rig_close(&rig);
    }
}

static void specialization_of_the_wrong_size(void) {
    struct rig rig;
    rig_open(&rig, NULL);
    const struct bhi_spec_constant constant = {2, 8, 1};
    rig_kernel_entry(&rig, 1, CODE(spec), "main", &constant, 1);
    rig_begin(&rig);
    rig_prepare(&rig, 1);
    rig_run_fails(&rig, BH_INVALID_KERNEL, 0,
                  "specialization constant 2 has 4 bytes in the module; 8 were given");
    const struct bhi_spec_constant zero = {0, 4, 0};
    rig_kernel_entry(&rig, 2, CODE(spec), "main", &zero, 1);
    rig_begin(&rig);
    rig_prepare(&rig, 2);
    rig_run_fails(&rig, BH_INVALID_KERNEL, 0, "workgroup size");
    rig_close(&rig);
}

/* saxpy, asking for |mode| of floats of |width| bits. Returns the bytes. */
static size_t with_mode(uint32_t code[1024], SpvExecutionMode mode, uint32_t width) {
    const uint32_t capability = (uint32_t)mode - SpvExecutionModeDenormPreserve +
                                SpvCapabilityDenormPreserve; /* in the same order */
    size_t at = 5, words = sizeof saxpy / 4;
    BHT_LT(words + 6, 1024);
    memcpy(code, saxpy, sizeof saxpy);
    uint32_t function = 0;
    for (; (code[at] & 0xffff) != SpvOpExecutionMode; at += code[at] >> 16) {
        function = (code[at] & 0xffff) == SpvOpEntryPoint ? code[at + 2] : function;
    }
    memmove(&code[at + 4], &code[at], (words - at) * 4);
    memcpy(&code[at], (uint32_t[]){4u << 16 | SpvOpExecutionMode, function, mode, width}, 16);
    memmove(&code[7], &code[5], (words + 4 - 5) * 4);
    memcpy(&code[5], (uint32_t[]){2u << 16 | SpvOpCapability, capability}, 8);
    return (words + 6) * 4;
}

/* lavapipe rounds to even and keeps the signs of zeros for all widths; of the others newer ones may
 * have some. */
static void modes_of_floats(void) {
    static const struct {
        SpvExecutionMode mode;
        const char *refusal;
        uint32_t first_width;
    } modes[] = {
        {SpvExecutionModeDenormPreserve, "capability DenormPreserve (4464) is not", 32},
        {SpvExecutionModeDenormFlushToZero, "capability DenormFlushToZero (4465) is not", 32},
        {SpvExecutionModeRoundingModeRTZ, "capability RoundingModeRTZ (4468) is not", 32},
        {SpvExecutionModeRoundingModeRTE, "capability RoundingModeRTE (4467) is not", 16},
        {SpvExecutionModeSignedZeroInfNanPreserve,
         "capability SignedZeroInfNanPreserve (4466) is not", 32},
    };
    struct rig rig;
    rig_open(&rig, NULL);
    float *x = rig_buffer(&rig, 1, 16), *y = rig_buffer(&rig, 2, 16);
    uint64_t id = 1;
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        for (uint32_t width = modes[m].first_width; width <= 32; width *= 2, id++) {
            static uint32_t code[1024];
            const struct {
                float a;
                uint32_t n;
            } push = {2, 4};
            *x = 3;
            *y = 1;
            rig_kernel(&rig, id, code, with_mode(code, modes[m].mode, width));
            rig_begin(&rig);
            rig_dispatch(&rig, id, 1, 1, 1,
                         BINDINGS({.binding = 0, .buffer = 1, .access = BH_ACCESS_READ},
                                  {.binding = 1, .buffer = 2, .access = BH_ACCESS_READ_WRITE}),
                         &push, sizeof push);
            BHT_TRUE(rig_run(&rig));
            if (rig.results[0].status == BH_OK) {
                BHT_EQ(*y, 7);
                continue;
            }
            BHT_EQ(rig.results[0].status, BH_INVALID_KERNEL);
            const bool always = modes[m].mode == SpvExecutionModeRoundingModeRTE ||
                                modes[m].mode == SpvExecutionModeSignedZeroInfNanPreserve;
            if ((always && rig_is_lavapipe(&rig)) ||
                !strstr(rig.errors[0].text, modes[m].refusal)) {
                BHT_FAIL("mode %d of %u bits: %s", (int)modes[m].mode, width, rig.errors[0].text);
            }
        }
    }
    rig_close(&rig);
}

/* An expression that would take 2^40 steps to compute. */
static void sizes_that_cannot_be_computed(void) {
    size_t bytes;
    uint32_t *code = rig_load(BACKEND_KERNELS, "doubling_constant", &bytes);
    refused_kernel(code, bytes, "main", BH_INVALID_KERNEL,
                   "the workgroup size in x is not a constant that can be computed here");
    free(code);
}

static void invalid_modules_keep_the_rule(void) {
    uint32_t code[sizeof add / 4];
    memcpy(code, add, sizeof add);
    code[0] = 0x03022307;
    refused_kernel(code, sizeof code, "main", BH_INVALID_KERNEL, "magic number");
    code[0] = 7;
    refused_kernel(code, sizeof code, "main", BH_INVALID_KERNEL, "magic number");
    memcpy(code, add, sizeof add);
    code[4] = 1;
    refused_kernel(code, sizeof code, "main", BH_INVALID_KERNEL,
                   "schema word (word 4) is 0x00000001");
    refused_kernel(add, sizeof add - 4, "main", BH_INVALID_KERNEL, "not valid SPIR-V: ");
    refused_kernel(add, sizeof add - 3, "main", BH_INVALID_KERNEL, "not a whole number of words");
    /* A rule of Vulkan's, not of SPIR-V's: the decoration of a binding is taken away. */
    memcpy(code, add, sizeof add);
    for (size_t i = 5; i < sizeof code / 4; i += code[i] >> 16) {
        if ((code[i] & 0xffff) == 71 && code[i + 2] == 33) { /* OpDecorate … Binding */
            code[i + 2] = 25; /* NonReadable takes no operand: malformed */
        }
    }
    refused_kernel(code, sizeof code, "main", BH_INVALID_KERNEL, "not valid SPIR-V: ");
}

/* -- dispatches ----------------------------------------------------------------------------- */

struct fixture {
    struct rig rig;
    uint32_t c;
};

static void open_add(struct fixture *f) {
    rig_open(&f->rig, NULL);
    rig_kernel(&f->rig, 1, CODE(add));
    rig_buffer(&f->rig, 1, 4096);
    rig_buffer(&f->rig, 2, 4096);
    rig_begin(&f->rig);
    f->c = 1;
}

#define X {.binding = 0, .buffer = 1, .access = BH_ACCESS_READ}
#define Y {.binding = 1, .buffer = 2, .access = BH_ACCESS_WRITE}

static void bindings_that_do_not_fit(void) {
    struct fixture f;
    open_add(&f);
    const uint64_t alignment = f.rig.backend->device.limits.minStorageBufferOffsetAlignment;
    BHT_GT(alignment, 1);
    char misaligned[64];
    snprintf(misaligned, sizeof misaligned, "offset %d is not a multiple of %d", 1, (int)alignment);
    const struct {
        const char *text;
        bh_status status;
        struct rig_binding bindings[3];
        size_t count;
    } cases[] = {
        {"set 0 binding 1 (\"Y\") of kernel \"k1\" was not given", BH_BINDING_MISMATCH, {X}, 1},
        {"set 0 binding 0 (\"X\") of kernel \"k1\" was not given", BH_BINDING_MISMATCH, {Y}, 1},
        {"set 0 binding 2 was given, but kernel \"k1\" does not use it",
         BH_BINDING_MISMATCH,
         {X, Y, {.binding = 2, .buffer = 1, .access = BH_ACCESS_READ}},
         3},
        {"set 1 binding 1 was given, but",
         BH_BINDING_MISMATCH,
         {X, {.set = 1, .binding = 1, .buffer = 2, .access = BH_ACCESS_READ}},
         2},
        {"set 0 binding 0 (\"X\") of kernel \"k1\" was given twice",
         BH_BINDING_MISMATCH,
         {X, X, Y},
         3},
        {"buffer 9 is not attached",
         BH_BINDING_MISMATCH,
         {{.binding = 0, .buffer = 9, .access = BH_ACCESS_READ, .size = 4}, Y},
         2},
        {misaligned,
         BH_BINDING_MISMATCH,
         {{.binding = 0, .buffer = 1, .access = BH_ACCESS_READ, .offset = 1}, Y},
         2},
        {"bytes 0 to 4100 of a buffer of 4096 bytes",
         BH_BINDING_MISMATCH,
         {{.binding = 0, .buffer = 1, .access = BH_ACCESS_READ, .size = 4100}, Y},
         2},
        {"bytes 4352 to 4356 of a buffer of 4096 bytes",
         BH_BINDING_MISMATCH,
         {{.binding = 0, .buffer = 1, .access = BH_ACCESS_READ, .offset = 4352, .size = 4}, Y},
         2},
        {"the range is empty",
         BH_BINDING_MISMATCH,
         {{.binding = 0, .buffer = 1, .access = BH_ACCESS_READ, .offset = 4096}, Y},
         2},
        {"set 0 binding 1 (\"Y\") of kernel \"k1\" is bound for reading, but the kernel writes to "
         "it",
         BH_BINDING_MISMATCH,
         {X, {.binding = 1, .buffer = 2, .access = BH_ACCESS_READ}},
         2},
    };
    f.rig.record_count = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig_begin(&f.rig);
        rig_fill(&f.rig, 2, 0, 4096, 0xdead); /* command 0 is good, and must not run */
        rig_dispatch(&f.rig, 1, 1, 1, 1, cases[i].bindings, cases[i].count, &f.c, sizeof f.c);
        rig_run_fails(&f.rig, cases[i].status, 1, cases[i].text);
        for (int word = 0; word < 1024; word++) {
            BHT_EQ(((uint32_t *)f.rig.buffers[1].data)[word], 0);
        }
    }
    rig_close(&f.rig);
}

static void access_of_undecorated_bindings(void) {
    struct rig rig;
    rig_open(&rig, NULL);
    rig_kernel(&rig, 1, CODE(undecorated));
    for (uint64_t id = 1; id <= 3; id++) {
        rig_buffer(&rig, id, 64);
    }
    rig_begin(&rig); /* an atomic is a write */
    rig_dispatch(&rig, 1, 1, 1, 1,
                 BINDINGS({.binding = 0, .buffer = 1, .access = BH_ACCESS_READ},
                          {.binding = 1, .buffer = 2, .access = BH_ACCESS_WRITE},
                          {.binding = 2, .buffer = 3, .access = BH_ACCESS_READ}),
                 NULL, 0);
    rig_run_fails(&rig, BH_BINDING_MISMATCH, 0, "set 0 binding 2 (\"Both\")");
    rig_begin(&rig);
    rig_dispatch(&rig, 1, 1, 1, 1,
                 BINDINGS({.binding = 0, .buffer = 1, .access = BH_ACCESS_READ},
                          {.binding = 1, .buffer = 2, .access = BH_ACCESS_WRITE},
                          {.binding = 2, .buffer = 3, .access = BH_ACCESS_READ_WRITE}),
                 NULL, 0);
    rig_run_ok(&rig);
    rig_close(&rig);
}

static void pointers_through_calls(void) {
    struct rig rig;
    size_t bytes;
    uint32_t *code = rig_load(BACKEND_KERNELS, "through_calls", &bytes);
    rig_open(&rig, NULL);
    rig_kernel(&rig, 1, code, bytes);
    rig_kernel_entry(&rig, 2, code, bytes, "other", NULL, 0);
    rig_kernel_entry(&rig, 3, code, bytes, "third", NULL, 0);
    for (uint64_t id = 1; id <= 4; id++) {
        rig_buffer(&rig, id, 64);
    }
    struct bhi_msg_kernel_info info;
    static struct bhi_msg_kernel_binding bindings[256];
    rig_begin(&rig);
    rig_prepare(&rig, 1);
    if (!rig.backend->device.enabled.v11.variablePointersStorageBuffer) {
        BHT_TRUE(!rig_is_lavapipe(&rig));
        rig_run_fails(&rig, BH_INVALID_KERNEL, 0, "capability VariablePointersStorageBuffer");
        free(code);
        rig_close(&rig);
        return;
    }
    rig_prepare(&rig, 2);
    rig_prepare(&rig, 3);
    rig_run_ok(&rig);
    BHT_TRUE(bhi_backend_next_reflection(rig.backend, &info, bindings));
    BHT_EQ(info.bindings, 3); /* d belongs to the other entry point */
    BHT_STR_EQ(bindings[0].name, "a");
    BHT_EQ(bindings[0].access, BH_ACCESS_WRITE);
    BHT_EQ(bindings[1].access, BH_ACCESS_WRITE);
    BHT_EQ(bindings[2].access, BH_ACCESS_READ);
    BHT_TRUE(bhi_backend_next_reflection(rig.backend, &info, bindings));
    BHT_EQ(info.kernel, 2);
    BHT_EQ(info.bindings, 1);
    BHT_STR_EQ(bindings[0].name, "d");
    BHT_EQ(bindings[0].access, BH_ACCESS_WRITE);
    BHT_EQ(info.local_x, 4);
    BHT_EQ(info.local_y, 2);
    BHT_TRUE(bhi_backend_next_reflection(rig.backend, &info, bindings));
    BHT_EQ(info.kernel, 3);
    BHT_EQ(info.bindings, 1);
    BHT_STR_EQ(bindings[0].name, "e");
    BHT_EQ(bindings[0].access, BH_ACCESS_WRITE);
    rig_begin(&rig);
    rig_dispatch(&rig, 1, 1, 1, 1,
                 BINDINGS({.binding = 0, .buffer = 1, .access = BH_ACCESS_WRITE},
                          {.binding = 1, .buffer = 2, .access = BH_ACCESS_READ},
                          {.binding = 2, .buffer = 3, .access = BH_ACCESS_READ}),
                 NULL, 0);
    rig_run_fails(&rig, BH_BINDING_MISMATCH, 0, "set 0 binding 1 (\"b\")");
    free(code);
    rig_close(&rig);
}

static void uniform_ranges(void) {
    struct rig rig;
    rig_open(&rig, NULL);
    rig_kernel(&rig, 1, CODE(places));
    const uint64_t longest = rig.backend->device.limits.maxUniformBufferRange;
    rig_buffer(&rig, 1, 4096);
    rig_buffer(&rig, 2, longest + 4096);
    const struct {
        uint64_t size;
        bh_status status;
        const char *text;
    } cases[] = {
        {12, BH_BINDING_MISMATCH,
         "set 3 binding 5 (\"factors\") of kernel \"k1\": the uniform block has 16 bytes, 12 were"},
        {longest + 4, BH_LIMIT_EXCEEDED, "maxUniformBufferRange"},
    };
    for (size_t i = 0; i < 2; i++) {
        rig_begin(&rig);
        rig_dispatch(
            &rig, 1, 1, 1, 1,
            BINDINGS({.binding = 0, .buffer = 1, .access = BH_ACCESS_READ, .size = 4},
                     {.binding = 3, .buffer = 1, .access = BH_ACCESS_READ, .size = 4},
                     {.binding = 700, .buffer = 1, .access = BH_ACCESS_READ, .size = 4},
                     {.set = 2, .binding = 1, .buffer = 1, .access = BH_ACCESS_WRITE, .size = 64},
                     {.set = 3,
                      .binding = 5,
                      .buffer = 2,
                      .access = BH_ACCESS_READ,
                      .size = cases[i].size},
                     {.set = 3, .binding = 6, .buffer = 2, .access = BH_ACCESS_READ, .size = 4}),
            NULL, 0);
        rig_run_fails(&rig, cases[i].status, 0, cases[i].text);
    }
    rig_close(&rig);
}

static void push_sizes(void) {
    struct fixture f;
    open_add(&f);
    f.rig.record_count = 0;
    static const uint32_t sizes[] = {0, 8};
    static const char *const texts[] = {"takes 4 bytes of push constants, 0 were given",
                                        "takes 4 bytes of push constants, 8 were given"};
    const uint32_t words[2] = {1, 2};
    for (size_t i = 0; i < 2; i++) {
        rig_begin(&f.rig);
        rig_dispatch(&f.rig, 1, 1, 1, 1, BINDINGS(X, Y), words, sizes[i]);
        rig_run_fails(&f.rig, BH_BINDING_MISMATCH, 0, texts[i]);
    }
    rig_close(&f.rig);
}

static void grids(void) {
    struct fixture f;
    open_add(&f);
    f.rig.record_count = 0;
    const uint32_t *limits = f.rig.backend->device.limits.maxComputeWorkGroupCount;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t groups[3] = {1, 1, 1};
        if (limits[axis] == UINT32_MAX) {
            continue;
        }
        groups[axis] = limits[axis] + 1;
        char text[96];
        snprintf(text, sizeof text, "%u workgroups in %c, the device allows %u", groups[axis],
                 "xyz"[axis], limits[axis]);
        rig_begin(&f.rig);
        rig_dispatch(&f.rig, 1, groups[0], groups[1], groups[2], BINDINGS(X, Y), &f.c, sizeof f.c);
        rig_run_fails(&f.rig, BH_LIMIT_EXCEEDED, 0, text);
    }
    rig_close(&f.rig);
}

/* Each axis is within its limit, the product is not: llvmpipe would run none of the first, and
 * 196,607 of the second. */
static void grids_of_more_than_32_bits(void) {
    struct fixture f;
    open_add(&f);
    f.rig.record_count = 0;
    BHT_TRUE(!f.rig.backend->device.whole_grids);
    rig_begin(&f.rig);
    rig_dispatch(&f.rig, 1, 4096, 4096, 256, BINDINGS(X, Y), &f.c, sizeof f.c);
    rig_run_fails(&f.rig, BH_LIMIT_EXCEEDED, 0,
                  "4096 x 4096 x 256 workgroups are 4294967296; this driver counts to "
                  "4294967295");
    rig_begin(&f.rig);
    rig_dispatch(&f.rig, 1, 65535, 65535, 65535, BINDINGS(X, Y), &f.c, sizeof f.c);
    rig_run_fails(&f.rig, BH_LIMIT_EXCEEDED, 0, "workgroups are 281462092005375; this driver");
    rig_close(&f.rig);
}

static void unknown_kernels_and_ranges(void) {
    struct fixture f;
    open_add(&f);
    f.rig.record_count = 0;
    rig_begin(&f.rig);
    rig_dispatch(&f.rig, 77, 1, 1, 1, NULL, 0, NULL, 0);
    rig_run_fails(&f.rig, BH_INVALID_KERNEL, 0, "kernel 77 does not exist");
    rig_begin(&f.rig);
    rig_prepare(&f.rig, 78);
    rig_run_fails(&f.rig, BH_INVALID_KERNEL, 0, "kernel 78 does not exist");
    rig_begin(&f.rig);
    rig_copy(&f.rig, 1, 0, 2, 4000, 100);
    rig_run_fails(&f.rig, BH_BINDING_MISMATCH, 0,
                  "copy destination: 100 bytes from 4000 on, of a buffer of 4096 bytes");
    rig_begin(&f.rig);
    rig_copy(&f.rig, 1, 4090, 2, 0, 100);
    rig_run_fails(&f.rig, BH_BINDING_MISMATCH, 0, "copy source: 100 bytes from 4090");
    rig_begin(&f.rig);
    rig_fill(&f.rig, 2, 4, 4096, 0);
    rig_run_fails(&f.rig, BH_BINDING_MISMATCH, 0, "fill: 4096 bytes from 4 on");
    rig_begin(&f.rig);
    rig_fill(&f.rig, 99, 0, 4, 0);
    rig_run_fails(&f.rig, BH_BINDING_MISMATCH, 0, "buffer 99 is not attached");
    rig_close(&f.rig);
}

/* A descriptor that does not hold what it should: the error is the buffer's, kept for whoever
 * names it. */
static void buffers_that_cannot_be_imported(void) {
    struct fixture f;
    open_add(&f);
    f.rig.record_count = 0;
    int unsealed = memfd_create("unsealed", 0);
    BHT_TRUE(unsealed >= 0 && ftruncate(unsealed, 4096) == 0);
    bhi_backend_attach(f.rig.backend, 5, unsealed, 4096, BHI_ATTACH_WRITE);
    bhi_backend_attach(f.rig.backend, 6, -1, 4096, BHI_ATTACH_WRITE);
    for (uint64_t id = 5; id <= 6; id++) {
        rig_begin(&f.rig);
        rig_fill(&f.rig, id, 0, 4, 0);
        rig_run_fails(&f.rig, BH_VULKAN, 0,
                      id == 5 ? "buffer 5: its memory cannot be used: Operation not permitted"
                              : "buffer 6: its memory cannot be used: Bad file descriptor");
    }
    bhi_backend_detach(f.rig.backend, 5);
    bhi_backend_detach(f.rig.backend, 6);
    rig_buffer(&f.rig, 5, 4096); /* attached again, good this time */
    rig_begin(&f.rig);
    rig_fill(&f.rig, 5, 0, 4, 1);
    rig_run_ok(&f.rig);
    rig_close(&f.rig);
}

/* What is attached for reading is read, and no command may write it; attached anew it is writable,
 * and what was recorded for the old one is forgotten. */
static void buffers_that_are_only_read(void) {
    struct fixture f;
    open_add(&f);
    f.rig.record_count = 0;
    const uint32_t *x = f.rig.buffers[0].data;
    uint32_t *y = f.rig.buffers[1].data;
    for (uint32_t round = 1; round <= 3; round++) {
        rig_attach_again(&f.rig, 1, BHI_ATTACH_READ);
        ((uint32_t *)f.rig.buffers[0].data)[0] = round;
        rig_begin(&f.rig);
        rig_copy(&f.rig, 1, 0, 2, 0, 4);
        rig_run_ok(&f.rig);
        BHT_EQ(y[0], round);
        rig_begin(&f.rig);
        rig_fill(&f.rig, 1, 0, 4, 9);
        rig_run_fails(&f.rig, BH_BINDING_MISMATCH, 0, "buffer 1 is attached for reading only");
        rig_begin(&f.rig);
        rig_copy(&f.rig, 2, 0, 1, 4, 4);
        rig_run_fails(&f.rig, BH_BINDING_MISMATCH, 0, "buffer 1 is attached for reading only");
        struct rig_binding write = X;
        write.access = BH_ACCESS_READ_WRITE;
        rig_begin(&f.rig);
        rig_dispatch(&f.rig, 1, 1, 1, 1, BINDINGS(write, Y), &f.c, sizeof f.c);
        rig_run_fails(&f.rig, BH_BINDING_MISMATCH, 0, "buffer 1 is attached for reading only");
        BHT_EQ(x[0], round);
        rig_attach_again(&f.rig, 1, BHI_ATTACH_WRITE);
        rig_begin(&f.rig);
        rig_copy(&f.rig, 1, 0, 2, 0, 4); /* the same bytes as before */
        rig_fill(&f.rig, 1, 0, 4, 70 + round);
        rig_run_ok(&f.rig);
        BHT_EQ(x[0], 70 + round);
        BHT_EQ(y[0], round);
    }
    rig_close(&f.rig);
}

/* A record among others: it alone is refused. */
static void a_refused_record_harms_no_other(void) {
    struct fixture f;
    open_add(&f);
    f.rig.record_count = 0;
    uint32_t *y = f.rig.buffers[1].data;
    for (int i = 0; i < 9; i++) {
        rig_begin(&f.rig);
        rig_fill(&f.rig, 2, (uint64_t)i * 4, 4, 1);
        if (i % 3 == 1) {
            rig_dispatch(&f.rig, 1, 1, 1, 1, BINDINGS(X), &f.c, sizeof f.c);
        }
    }
    BHT_TRUE(rig_run(&f.rig));
    for (int i = 0; i < 9; i++) {
        const bool bad = i % 3 == 1;
        BHT_EQ(f.rig.results[i].status, bad ? BH_BINDING_MISMATCH : BH_OK);
        BHT_EQ(f.rig.results[i].executed, bad ? BH_EXECUTED_NO : BH_EXECUTED_YES);
        BHT_EQ(f.rig.results[i].command_index, bad ? 1u : BHI_NO_COMMAND);
        BHT_EQ(y[i], bad ? 0 : 1);
    }
    rig_close(&f.rig);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(kernels_out_of_scope),
        BHT_TEST(entry_points),
        BHT_TEST(kernels_over_limits),
        BHT_TEST(specialization_of_the_wrong_size),
        BHT_TEST(modes_of_floats),
        BHT_TEST(sizes_that_cannot_be_computed),
        BHT_TEST(invalid_modules_keep_the_rule),
        BHT_TEST(bindings_that_do_not_fit),
        BHT_TEST(access_of_undecorated_bindings),
        BHT_TEST(pointers_through_calls),
        BHT_TEST(uniform_ranges),
        BHT_TEST(push_sizes),
        BHT_TEST(grids),
        BHT_TEST(grids_of_more_than_32_bits),
        BHT_TEST(unknown_kernels_and_ranges),
        BHT_TEST(buffers_that_cannot_be_imported),
        BHT_TEST(buffers_that_are_only_read),
        BHT_TEST(a_refused_record_harms_no_other),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
