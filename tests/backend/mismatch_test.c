/* Commands that are refused because they do not fit the kernel, the buffers or the device: the
 * status, the command, and a text that says what to mend. */
#include "rig.h"
#include "worker/vulkan/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const uint32_t c = 1;

static void open_add(void) {
    rig_open_usual();
    rig_kernel(1, CODE(add));
    rig_buffer(1, 4096);
    rig_buffer(2, 4096);
}

BHT_AT_START(bht_around(open_add, NULL))

#define X READ(0, 1)
#define Y WRITE(1, 2)
/* |from| and |bytes|: of buffer |id|, as X. */
#define PART(id, from, bytes)                                                                      \
    {.binding = 0, .buffer = id, .access = BH_ACCESS_READ, .offset = from, .size = bytes}

TEST(bindings_that_do_not_fit) {
    const uint64_t alignment = bhi_vk(rig.backend)->device.limits.minStorageBufferOffsetAlignment;
    BHT_GT(alignment, 1);
    char misaligned[64];
    snprintf(misaligned, sizeof misaligned, "offset %d is not a multiple of %d", 1, (int)alignment);
    const struct {
        const char *text;
        const struct rig_binding *bindings;
        size_t count;
    } cases[] = {
        {"set 0 binding 1 (\"Y\") of kernel \"k1\" was not given", BINDINGS(X)},
        {"set 0 binding 0 (\"X\") of kernel \"k1\" was not given", BINDINGS(Y)},
        {"set 0 binding 2 was given, but kernel \"k1\" does not use it",
         BINDINGS(X, Y, READ(2, 1))},
        {"set 1 binding 1 was given, but",
         BINDINGS(X, {.set = 1, .binding = 1, .buffer = 2, .access = BH_ACCESS_READ})},
        {"set 0 binding 0 (\"X\") of kernel \"k1\" was given twice", BINDINGS(X, X, Y)},
        {"buffer 9 is not attached", BINDINGS(PART(9, 0, 4), Y)},
        {misaligned, BINDINGS(PART(1, 1, 0), Y)},
        {"the range ends at byte 4100 of a buffer of 4096 bytes", BINDINGS(PART(1, 0, 4100), Y)},
        {"the range ends at byte 4356 of a buffer of 4096 bytes", BINDINGS(PART(1, 4352, 4), Y)},
        {"the range is empty", BINDINGS(PART(1, 4096, 0), Y)},
        {"set 0 binding 1 (\"Y\") of kernel \"k1\" is bound for reading, but the kernel writes to "
         "it",
         BINDINGS(X, READ(1, 2))},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig_begin();
        rig_fill(2, 0, 4096, 0xdead); /* command 0 is good, and must not run */
        rig_dispatch(1, 1, 1, 1, cases[i].bindings, cases[i].count, &c, sizeof c);
        rig_run_fails(BH_BINDING_MISMATCH, 1, cases[i].text);
        for (int word = 0; word < 1024; word++) {
            BHT_EQ(((uint32_t *)rig.buffers[1].data)[word], 0);
        }
    }
}

TEST(access_of_undecorated_bindings) {
    rig_kernel(1, CODE(undecorated));
    for (uint64_t id = 1; id <= 3; id++) {
        rig_buffer(id, 64);
    }
    /* An atomic is a write. */
    rig_one(1, BINDINGS(READ(0, 1), WRITE(1, 2), READ(2, 3)));
    rig_run_fails(BH_BINDING_MISMATCH, 0, "set 0 binding 2 (\"Both\")");
    rig_one(1, BINDINGS(READ(0, 1), WRITE(1, 2), BOTH(2, 3)));
    rig_run_ok();
}

TEST(pointers_through_calls) {
    size_t bytes;
    uint32_t *code = rig_load(BACKEND_KERNELS, "through_calls", &bytes);
    rig_kernel(1, code, bytes);
    rig_kernel_entry(2, code, bytes, "other", NULL, 0);
    rig_kernel_entry(3, code, bytes, "third", NULL, 0);
    for (uint64_t id = 1; id <= 4; id++) {
        rig_buffer(id, 64);
    }
    rig_begin();
    rig_prepare(1);
    if (!bhi_vk(rig.backend)->device.enabled.v11.variablePointersStorageBuffer) {
        BHT_TRUE(!rig_is_lavapipe());
        rig_run_fails(BH_INVALID_KERNEL, 0, "capability VariablePointersStorageBuffer");
        return;
    }
    rig_prepare(2);
    rig_prepare(3);
    rig_run_ok();
    struct bhi_msg_kernel_info info = rig_reflection();
    BHT_EQ(info.bindings, 3); /* d belongs to the other entry point */
    BHT_STR_EQ(rig.bindings[0].name, "a");
    BHT_EQ(rig.bindings[0].access, BH_ACCESS_WRITE);
    BHT_EQ(rig.bindings[1].access, BH_ACCESS_WRITE);
    BHT_EQ(rig.bindings[2].access, BH_ACCESS_READ);
    info = rig_reflection();
    BHT_EQ(info.kernel, 2);
    BHT_EQ(info.bindings, 1);
    BHT_STR_EQ(rig.bindings[0].name, "d");
    BHT_EQ(rig.bindings[0].access, BH_ACCESS_WRITE);
    BHT_EQ(info.local_x, 4);
    BHT_EQ(info.local_y, 2);
    info = rig_reflection();
    BHT_EQ(info.kernel, 3);
    BHT_EQ(info.bindings, 1);
    BHT_STR_EQ(rig.bindings[0].name, "e");
    BHT_EQ(rig.bindings[0].access, BH_ACCESS_WRITE);
    rig_one(1, BINDINGS(WRITE(0, 1), READ(1, 2), READ(2, 3)));
    rig_run_fails(BH_BINDING_MISMATCH, 0, "set 0 binding 1 (\"b\")");
}

TEST(uniform_ranges) {
    rig_kernel(1, CODE(places));
    const uint64_t longest = bhi_vk(rig.backend)->device.limits.maxUniformBufferRange;
    rig_buffer(1, 4096);
    rig_buffer(2, longest + 4096);
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
        rig_one(1, BINDINGS(
                       {.binding = 0, .buffer = 1, .access = BH_ACCESS_READ, .size = 4},
                       {.binding = 3, .buffer = 1, .access = BH_ACCESS_READ, .size = 4},
                       {.binding = 700, .buffer = 1, .access = BH_ACCESS_READ, .size = 4},
                       {.set = 2, .binding = 1, .buffer = 1, .access = BH_ACCESS_WRITE, .size = 64},
                       {.set = 3,
                        .binding = 5,
                        .buffer = 2,
                        .access = BH_ACCESS_READ,
                        .size = cases[i].size},
                       {.set = 3, .binding = 6, .buffer = 2, .access = BH_ACCESS_READ, .size = 4}));
        rig_run_fails(cases[i].status, 0, cases[i].text);
    }
}

/* Where a buffer can be longer than the device's limit: a GPU's limit is 4 GiB, SwiftShader's is
 * 1 GiB and so is the most that it allocates. */
TEST(storage_ranges) {
    const uint64_t longest = bhi_vk(rig.backend)->device.limits.maxStorageBufferRange;
    if (longest >= 1u << 30) {
        BHT_TRUE(!rig_is_lavapipe());
        return;
    }
    rig_buffer(3, longest + 4096);
    rig_begin();
    rig_dispatch(1, 1, 1, 1, BINDINGS(PART(3, 0, longest + 4), Y), &c, sizeof c);
    rig_run_fails(BH_LIMIT_EXCEEDED, 0, "maxStorageBufferRange");
}

TEST(push_sizes) {
    static const uint32_t sizes[] = {0, 8};
    static const char *const texts[] = {"takes 4 bytes of push constants, 0 were given",
                                        "takes 4 bytes of push constants, 8 were given"};
    const uint32_t words[2] = {1, 2};
    for (size_t i = 0; i < 2; i++) {
        rig_begin();
        rig_dispatch(1, 1, 1, 1, BINDINGS(X, Y), words, sizes[i]);
        rig_run_fails(BH_BINDING_MISMATCH, 0, texts[i]);
    }
}

TEST(grids) {
    const uint32_t *limits = bhi_vk(rig.backend)->device.limits.maxComputeWorkGroupCount;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t groups[3] = {1, 1, 1};
        if (limits[axis] == UINT32_MAX) {
            continue;
        }
        groups[axis] = limits[axis] + 1;
        char text[96];
        snprintf(text, sizeof text, "%u workgroups in %c, the device allows %u", groups[axis],
                 "xyz"[axis], limits[axis]);
        rig_begin();
        rig_dispatch(1, groups[0], groups[1], groups[2], BINDINGS(X, Y), &c, sizeof c);
        rig_run_fails(BH_LIMIT_EXCEEDED, 0, text);
    }
}

/* Each axis is within its limit, the product is not: llvmpipe would run none of the first, and
 * 196,607 of the second. */
TEST(grids_of_more_than_32_bits) {
    if (bhi_vk(rig.backend)->device.whole_grids) {
        BHT_TRUE(!rig_is_lavapipe());
        return;
    }
    rig_begin();
    rig_dispatch(1, 4096, 4096, 256, BINDINGS(X, Y), &c, sizeof c);
    rig_run_fails(BH_LIMIT_EXCEEDED, 0,
                  "4294967296 workgroups in a grid, the device allows 4294967295");
    rig_begin();
    rig_dispatch(1, 65535, 65535, 65535, BINDINGS(X, Y), &c, sizeof c);
    rig_run_fails(BH_LIMIT_EXCEEDED, 0, "281462092005375 workgroups in a grid");
}

TEST(unknown_kernels_and_ranges) {
    rig_begin();
    rig_dispatch(77, 1, 1, 1, NULL, 0, NULL, 0);
    rig_run_fails(BH_INVALID_KERNEL, 0, "kernel 77 does not exist");
    rig_begin();
    rig_prepare(78);
    rig_run_fails(BH_INVALID_KERNEL, 0, "kernel 78 does not exist");
    rig_begin();
    rig_copy(1, 0, 2, 4000, 100);
    rig_run_fails(BH_BINDING_MISMATCH, 0,
                  "copy destination: the range ends at byte 4100 of a buffer of 4096 bytes");
    rig_begin();
    rig_copy(1, 4090, 2, 0, 100);
    rig_run_fails(BH_BINDING_MISMATCH, 0, "copy source: the range ends at byte 4190");
    rig_begin();
    rig_fill(2, 4, 4096, 0);
    rig_run_fails(BH_BINDING_MISMATCH, 0, "fill: the range ends at byte 4100");
    rig_begin();
    rig_fill(99, 0, 4, 0);
    rig_run_fails(BH_BINDING_MISMATCH, 0, "buffer 99 is not attached");
}

/* A descriptor that does not hold what it should: the error is the buffer's, kept for whoever
 * names it. */
TEST(buffers_that_cannot_be_imported) {
    int unsealed = memfd_create("unsealed", 0);
    BHT_TRUE(unsealed >= 0 && ftruncate(unsealed, 4096) == 0);
    bhi_backend_attach(rig.backend, 5, unsealed, 4096, BHI_ATTACH_WRITE);
    bhi_backend_attach(rig.backend, 6, -1, 4096, BHI_ATTACH_WRITE);
    for (uint64_t id = 5; id <= 6; id++) {
        rig_begin();
        rig_fill(id, 0, 4, 0);
        rig_run_fails(BH_VULKAN, 0,
                      id == 5
                          ? "the device cannot use the memory of a buffer: Operation not permitted"
                          : "the device cannot use the memory of a buffer: Bad file descriptor");
    }
    bhi_backend_detach(rig.backend, 5);
    bhi_backend_detach(rig.backend, 6);
    rig_buffer(5, 4096); /* attached again, good this time */
    rig_begin();
    rig_fill(5, 0, 4, 1);
    rig_run_ok();
}

/* What is attached for reading is read, and no command may write it; attached anew it is writable,
 * and what was recorded for the old one is forgotten. */
TEST(buffers_that_are_only_read) {
    const uint32_t *x = rig.buffers[0].data;
    uint32_t *y = rig.buffers[1].data;
    for (uint32_t round = 1; round <= 3; round++) {
        rig_attach_again(1, BHI_ATTACH_READ);
        ((uint32_t *)rig.buffers[0].data)[0] = round;
        rig_begin();
        rig_copy(1, 0, 2, 0, 4);
        rig_run_ok();
        BHT_EQ(y[0], round);
        rig_begin();
        rig_fill(1, 0, 4, 9);
        rig_run_fails(BH_BINDING_MISMATCH, 0, "buffer 1 is attached for reading only");
        rig_begin();
        rig_copy(2, 0, 1, 4, 4);
        rig_run_fails(BH_BINDING_MISMATCH, 0, "buffer 1 is attached for reading only");
        struct rig_binding write = X;
        write.access = BH_ACCESS_READ_WRITE;
        rig_begin();
        rig_dispatch(1, 1, 1, 1, BINDINGS(write, Y), &c, sizeof c);
        rig_run_fails(BH_BINDING_MISMATCH, 0, "buffer 1 is attached for reading only");
        BHT_EQ(x[0], round);
        rig_attach_again(1, BHI_ATTACH_WRITE);
        rig_begin();
        rig_copy(1, 0, 2, 0, 4); /* the same bytes as before */
        rig_fill(1, 0, 4, 70 + round);
        rig_run_ok();
        BHT_EQ(x[0], 70 + round);
        BHT_EQ(y[0], round);
    }
}

/* A record among others: it alone is refused. */
TEST(a_refused_record_harms_no_other) {
    uint32_t *y = rig.buffers[1].data;
    for (int i = 0; i < 9; i++) {
        rig_begin();
        rig_fill(2, (uint64_t)i * 4, 4, 1);
        if (i % 3 == 1) {
            rig_dispatch(1, 1, 1, 1, BINDINGS(X), &c, sizeof c);
        }
    }
    BHT_TRUE(rig_run());
    for (int i = 0; i < 9; i++) {
        const bool bad = i % 3 == 1;
        BHT_EQ(rig.results[i].status, bad ? BH_BINDING_MISMATCH : BH_OK);
        BHT_EQ(rig.results[i].executed, bad ? BH_EXECUTED_NO : BH_EXECUTED_YES);
        BHT_EQ(rig.results[i].command_index, bad ? 1u : BHI_NO_COMMAND);
        BHT_EQ(y[i], bad ? 0 : 1);
    }
}
