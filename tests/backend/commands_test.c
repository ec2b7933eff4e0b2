/* Copies, fills, and the barriers between commands that depend on each other. The plan is checked
 * by counting barriers, and by the validation layer's synchronization validation, which complains
 * of a missing one. */
#include "rig.h"
#include "worker/vulkan/backend.h"

enum { ADD = 1, INCREMENT, UNDECORATED };

static void open_with_kernels(void) {
    rig_open_usual();
    rig_kernel(ADD, CODE(add));
    rig_kernel(INCREMENT, CODE(increment));
    rig_kernel(UNDECORATED, CODE(undecorated));
}

BHT_AT_START(bht_around(open_with_kernels, NULL))

/* Barriers that the record just run has needed. */
static uint64_t run_counting(void) {
    uint64_t before = bhi_vk(rig.backend)->barriers;
    rig_run_ok();
    return bhi_vk(rig.backend)->barriers - before;
}

TEST(dependent_commands_are_ordered) {
    uint32_t *a = rig_buffer(1, 1024);
    uint32_t *b = rig_buffer(2, 1024);
    uint32_t *c = rig_buffer(3, 1024);
    rig_begin();
    rig_fill(1, 0, 1024, 10);
    rig_add(ADD, 1, 2, 1);      /* read after write */
    rig_copy(2, 0, 3, 0, 1024); /* read after write, from a dispatch to a transfer */
    BHT_EQ(run_counting(), 2);
    BHT_EQ(a[255], 10);
    BHT_EQ(b[255], 11);
    BHT_EQ(c[255], 11);

    rig_begin();
    rig_add(ADD, 1, 2, 5);
    rig_fill(1, 0, 1024, 0); /* write after read */
    BHT_EQ(run_counting(), 1);
    BHT_EQ(b[0], 15);
    BHT_EQ(a[0], 0);

    rig_begin();
    rig_fill(1, 0, 1024, 1);
    rig_fill(1, 512, 512, 2); /* write after write */
    BHT_EQ(run_counting(), 1);
    BHT_EQ(a[127], 1);
    BHT_EQ(a[128], 2);

    a[0] = 0;
    rig_begin();
    for (int i = 0; i < 100; i++) { /* read and write after both */
        rig_dispatch(INCREMENT, 1, 1, 1, BINDINGS(BOTH(0, 1)), NULL, 0);
    }
    BHT_EQ(run_counting(), 99);
    BHT_EQ(a[0], 100);
}

TEST(independent_commands_are_not) {
    uint32_t *a = rig_buffer(1, 4096);
    for (uint64_t id = 2; id < 10; id++) {
        rig_buffer(id, 1024);
    }
    a[0] = 3;
    rig_begin();
    for (uint64_t id = 2; id < 10; id++) {
        rig_add(ADD, 1, id, (uint32_t)id); /* all read 1, each writes its own */
    }
    BHT_EQ(run_counting(), 0);

    rig_begin();
    for (uint64_t offset = 0; offset < 4096; offset += 64) { /* slices, also out of order */
        rig_fill(1, (offset * 7) % 4096, 64, 1);
    }
    BHT_EQ(run_counting(), 0);

    /* One barrier settles all that came before it. */
    rig_begin();
    rig_fill(2, 0, 1024, 1);
    rig_fill(3, 0, 1024, 2);
    rig_fill(4, 0, 1024, 3);
    rig_copy(2, 0, 5, 0, 1024);
    rig_copy(3, 0, 6, 0, 1024);
    rig_copy(4, 0, 7, 0, 1024);
    BHT_EQ(run_counting(), 1);

    /* A source that the kernel could write, but does not, is read. */
    rig_begin();
    for (uint64_t id = 2; id < 8; id += 2) {
        rig_dispatch(UNDECORATED, 1, 1, 1, BINDINGS(READ(0, 1), WRITE(1, id), BOTH(2, id + 1)),
                     NULL, 0);
    }
    BHT_EQ(run_counting(), 0);
}

/* -- memory that the device reads through a copy of the host ---------------------------------- */

enum { SOURCE = 21, TARGET, OTHER, BYTES = 4096 };
static uint8_t *source, *target;

static void open_source(enum bhi_attach access) {
    open_with_kernels();
    bhi_vk(rig.backend)->device.imports_read_only = false;
    source = rig_buffer(SOURCE, BYTES);
    target = rig_buffer(TARGET, BYTES);
    rig_attach_again(SOURCE, access);
}

/* The host has written it anew. */
static void change(uint32_t seed) {
    for (uint32_t i = 0; i < BYTES; i++) {
        source[i] = (uint8_t)(i * 31 + i / 256 * 7 + seed * 101);
        target[i] = (uint8_t)~source[i];
    }
}

static void copy_range(const uint64_t range[2]) {
    rig_copy(SOURCE, range[0], TARGET, range[0], range[1] - range[0]);
}

static void expect_range(const uint64_t range[2]) {
    BHT_MEM_EQ(target + range[0], source + range[0], range[1] - range[0]);
}

/* E11: the device sees what the host has written before, whatever was read of it then. */
TEST(a_source_is_read_anew_each_time) {
    static const uint64_t ranges[][2][2] = {{{0, 8}, {1000, BYTES}},
                                            {{100, 104}, {3000, 3004}},
                                            {{3000, 3004}, {100, 104}},
                                            {{1000, 2000}, {1500, 2500}}};
    open_source(BHI_ATTACH_READ);
    uint8_t *other = rig_buffer(OTHER, BYTES);
    rig_attach_again(OTHER, BHI_ATTACH_READ);
    for (uint32_t i = 0; i < 2 * BHT_COUNT(ranges); i++) { /* in one record, then in two */
        const uint64_t(*two)[2] = ranges[i % BHT_COUNT(ranges)];
        change(i);
        memset(other, (int)i, BYTES);
        rig_begin();
        copy_range(two[0]);
        if (i >= BHT_COUNT(ranges)) {
            rig_begin();
        }
        copy_range(two[1]);
        rig_copy(OTHER, 0, TARGET, 8, 8);
        rig_run_ok();
        expect_range(two[0]);
        expect_range(two[1]);
        BHT_MEM_EQ(target + 8, other, 8);
    }
    change(99);
    rig_begin();
    rig_add(ADD, SOURCE, TARGET, 0); /* and so do kernels */
    rig_run_ok();
    expect_range((const uint64_t[]){0, 1024});
}

/* Of content that never changes each part is read once, and what lies between two of them. */
TEST(a_constant_source_is_read_as_it_is_needed) {
    static const uint64_t ranges[][2] = {{1024, 2048}, {1200, 1300}, {2048, 2052}, {1020, 1024},
                                         {3000, 3004}, {2500, 2600}, {8, 12},      {0, 4096}};
    open_source(BHI_ATTACH_CONSTANT);
    change(1);
    for (size_t i = 0; i < BHT_COUNT(ranges); i++) {
        rig_begin();
        copy_range(ranges[i]);
        rig_run_ok();
        expect_range(ranges[i]);
    }
}
