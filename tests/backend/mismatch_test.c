/* Commands that are refused because they do not fit the kernel, the buffers or the device: the
 * status, the command, and a text that says what to mend. */
#include "rig.h"
#include "worker/vulkan/backend.h"

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

TEST(bindings_that_do_not_fit) {
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
        {"the range ends at byte 4100 of a buffer of 4096 bytes",
         BH_BINDING_MISMATCH,
         {{.binding = 0, .buffer = 1, .access = BH_ACCESS_READ, .size = 4100}, Y},
         2},
        {"the range ends at byte 4356 of a buffer of 4096 bytes",
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

TEST(access_of_undecorated_bindings) {
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

TEST(pointers_through_calls) {
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

TEST(uniform_ranges) {
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

/* Where a buffer can be longer than the device's limit: a GPU's limit is 4 GiB, SwiftShader's is
 * 1 GiB and so is the most that it allocates. */
TEST(storage_ranges) {
    struct fixture f;
    open_add(&f);
    f.rig.record_count = 0;
    const uint64_t longest = f.rig.backend->device.limits.maxStorageBufferRange;
    if (longest >= 1u << 30) {
        BHT_TRUE(!rig_is_lavapipe(&f.rig));
        rig_close(&f.rig);
        return;
    }
    rig_buffer(&f.rig, 3, longest + 4096);
    rig_begin(&f.rig);
    rig_dispatch(
        &f.rig, 1, 1, 1, 1,
        BINDINGS({.binding = 0, .buffer = 3, .access = BH_ACCESS_READ, .size = longest + 4}, Y),
        &f.c, sizeof f.c);
    rig_run_fails(&f.rig, BH_LIMIT_EXCEEDED, 0, "maxStorageBufferRange");
    rig_close(&f.rig);
}

TEST(push_sizes) {
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

TEST(grids) {
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
TEST(grids_of_more_than_32_bits) {
    struct fixture f;
    open_add(&f);
    f.rig.record_count = 0;
    if (f.rig.backend->device.whole_grids) {
        BHT_TRUE(!rig_is_lavapipe(&f.rig));
        rig_close(&f.rig);
        return;
    }
    rig_begin(&f.rig);
    rig_dispatch(&f.rig, 1, 4096, 4096, 256, BINDINGS(X, Y), &f.c, sizeof f.c);
    rig_run_fails(&f.rig, BH_LIMIT_EXCEEDED, 0,
                  "4294967296 workgroups in a grid, the device allows 4294967295");
    rig_begin(&f.rig);
    rig_dispatch(&f.rig, 1, 65535, 65535, 65535, BINDINGS(X, Y), &f.c, sizeof f.c);
    rig_run_fails(&f.rig, BH_LIMIT_EXCEEDED, 0, "281462092005375 workgroups in a grid");
    rig_close(&f.rig);
}

TEST(unknown_kernels_and_ranges) {
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
                  "copy destination: the range ends at byte 4100 of a buffer of 4096 bytes");
    rig_begin(&f.rig);
    rig_copy(&f.rig, 1, 4090, 2, 0, 100);
    rig_run_fails(&f.rig, BH_BINDING_MISMATCH, 0, "copy source: the range ends at byte 4190");
    rig_begin(&f.rig);
    rig_fill(&f.rig, 2, 4, 4096, 0);
    rig_run_fails(&f.rig, BH_BINDING_MISMATCH, 0, "fill: the range ends at byte 4100");
    rig_begin(&f.rig);
    rig_fill(&f.rig, 99, 0, 4, 0);
    rig_run_fails(&f.rig, BH_BINDING_MISMATCH, 0, "buffer 99 is not attached");
    rig_close(&f.rig);
}

/* A descriptor that does not hold what it should: the error is the buffer's, kept for whoever
 * names it. */
TEST(buffers_that_cannot_be_imported) {
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
                      id == 5
                          ? "the device cannot use the memory of a buffer: Operation not permitted"
                          : "the device cannot use the memory of a buffer: Bad file descriptor");
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
TEST(buffers_that_are_only_read) {
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
TEST(a_refused_record_harms_no_other) {
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
