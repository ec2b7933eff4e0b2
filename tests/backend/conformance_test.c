/* What every backend does: compiled for each (CMakeLists.txt). */
#include "rig.h"

enum { ADD = 1, INCREMENT };

static void open_with_kernels(void) {
    rig_open_usual();
    rig_add_kernel(ADD);
    rig_increment_kernel(INCREMENT);
}

BHT_AT_START(bht_around(open_with_kernels, NULL))

TEST(copy_and_fill) {
    uint8_t *a = rig_buffer(1, 1001);
    uint8_t *b = rig_buffer(2, 1001);
    for (int i = 0; i < 1001; i++) {
        a[i] = (uint8_t)i;
    }
    rig_begin();
    rig_copy(1, 1, 2, 3, 997); /* odd offsets and sizes */
    rig_fill(2, 16, 8, 0xa1b2c3d4);
    rig_copy(1, 0, 1, 900, 100); /* in one buffer, apart */
    rig_run_ok();
    for (int i = 0; i < 1001; i++) {
        uint8_t expected = i >= 3 && i < 1000 ? (uint8_t)(i - 2) : 0;
        if (i >= 16 && i < 24) {
            static const uint8_t word[4] = {0xd4, 0xc3, 0xb2, 0xa1};
            expected = word[i % 4];
        }
        BHT_EQ(b[i], expected);
        BHT_EQ(a[i], i >= 900 && i < 1000 ? (uint8_t)(i - 900) : (uint8_t)i);
    }
}

TEST(dependent_commands_are_ordered) {
    uint32_t *a = rig_buffer(1, 1024);
    uint32_t *b = rig_buffer(2, 1024);
    uint32_t *c = rig_buffer(3, 1024);
    rig_begin();
    rig_fill(1, 0, 1024, 10);
    rig_add(ADD, 1, 2, 1);      /* read after write */
    rig_copy(2, 0, 3, 0, 1024); /* read after write, from a dispatch to a transfer */
    rig_run_ok();
    BHT_EQ(a[255], 10);
    BHT_EQ(b[255], 11);
    BHT_EQ(c[255], 11);

    rig_begin();
    rig_add(ADD, 1, 2, 5);
    rig_fill(1, 0, 1024, 0); /* write after read */
    rig_run_ok();
    BHT_EQ(b[0], 15);
    BHT_EQ(a[0], 0);

    rig_begin();
    rig_fill(1, 0, 1024, 1);
    rig_fill(1, 512, 512, 2); /* write after write */
    rig_run_ok();
    BHT_EQ(a[127], 1);
    BHT_EQ(a[128], 2);

    a[0] = 0;
    rig_begin();
    for (int i = 0; i < 100; i++) { /* read and write after both */
        rig_increment(INCREMENT, 1);
    }
    rig_run_ok();
    BHT_EQ(a[0], 100);
    BHT_EQ(a[1], 1);
}

/* What one record writes the next one reads, whether they run together or not. */
TEST(records_are_ordered) {
    for (int merged = 0; merged < 2; merged++) {
        open_with_kernels();
        uint32_t *a = rig_buffer(1, 1024);
        uint32_t *b = rig_buffer(2, 1024);
        for (uint32_t i = 0; i < 40; i++) {
            rig_begin();
            rig_add(ADD, 1 + i % 2, 2 - i % 2, 1);
            if (!merged) {
                rig_run_ok();
            }
        }
        if (merged) {
            rig_run_ok();
        }
        for (int i = 0; i < 256; i++) {
            BHT_EQ(a[i], 40);
            BHT_EQ(b[i], 39);
        }
    }
}

/* E11: the device sees what the host has written before, whatever was read of it then. */
TEST(a_source_is_read_anew_each_time) {
    enum { SOURCE = 21, TARGET, BYTES = 4096 };
    uint32_t *source = rig_buffer(SOURCE, BYTES), *target = rig_buffer(TARGET, BYTES);
    rig_attach_again(SOURCE, BHI_ATTACH_READ);
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < BYTES / 4; i++) {
            source[i] = i * 31 + round;
            target[i] = 0;
        }
        rig_begin();
        rig_add(ADD, SOURCE, TARGET, 1);
        rig_copy(SOURCE, 2048, TARGET, 2048, 1024);
        rig_run_ok();
        for (uint32_t i = 512; i < 768; i++) {
            BHT_EQ(target[i], source[i]);
        }
        for (uint32_t i = 0; i < 256; i++) {
            BHT_EQ(target[i], source[i] + 1);
        }
    }
}

/* D3: memory is zero when it is made and when it is cleared. Another worker sees what it holds. */
TEST(d3_device_memory_is_zero_and_shared) {
    if (!bhi_backend_exports(rig.backend)) {
        return; /* a CPU's driver */
    }
    uint32_t *seen = rig_buffer(1, 4096);
    memset(seen, 0xff, 4096);
    rig_make(2, 4096);
    rig_import(3, 2);
    rig_begin();
    rig_copy(3, 0, 1, 0, 4096);
    rig_run_ok();
    BHT_EQ(seen[0] | seen[1023], 0);
    rig_begin();
    rig_fill(2, 0, 4096, 7);
    rig_run_ok();
    rig_begin();
    rig_add(ADD, 3, 1, 1);
    rig_run_ok();
    BHT_EQ(seen[0], 8);
    BHT_EQ(seen[255], 8);
    BHT_TRUE(bhi_backend_clear(rig.backend, 2));
    rig_begin();
    rig_copy(3, 0, 1, 0, 4096);
    rig_run_ok();
    BHT_EQ(seen[0] | seen[1023], 0);
    BHT_TRUE(!bhi_backend_clear(rig.backend, 1)); /* the host's */
    BHT_TRUE(!bhi_backend_clear(rig.backend, 4711));
}

static void copy_beyond(void) {
    rig_copy(1, 0, 2, 1000, 25);
}
static void copy_from_beyond(void) {
    rig_copy(1, 1020, 2, 0, 8);
}
static void fill_beyond(void) {
    rig_fill(1, 1020, 8, 1);
}
static void missing_source(void) {
    rig_copy(99, 0, 1, 0, 4);
}
static void missing_kernel(void) {
    rig_add(77, 1, 2, 0);
}
static void read_only_target(void) {
    rig_fill(3, 0, 4, 1);
}
static void written_but_read_only(void) {
    rig_add(ADD, 1, 3, 0);
}
static void bound_twice(void) {
    const uint32_t push[2] = {0, 256};
    rig_dispatch(ADD, 4, 1, 1, BINDINGS(READ(0, 1), READ(0, 2), WRITE(1, 2)), push,
                 rig_format == BHI_KERNEL_IMAGE ? 8 : 4);
}
static void bound_beyond(void) {
    const uint32_t push[2] = {0, 256};
    rig_dispatch(
        ADD, 4, 1, 1,
        BINDINGS(
            READ(0, 1),
            {.binding = 1, .buffer = 2, .access = BH_ACCESS_WRITE, .offset = 256, .size = 1024}),
        push, rig_format == BHI_KERNEL_IMAGE ? 8 : 4);
}
static void no_push(void) {
    rig_dispatch(ADD, 4, 1, 1, BINDINGS(READ(0, 1), WRITE(1, 2)), NULL, 0);
}

/* The record fails alone, none of its commands runs, and the error has its command. */
TEST(a_refused_record_fails_alone) {
    static const struct {
        void (*bad)(void);
        bh_status status;
        const char *text;
    } cases[] = {
        {copy_beyond, BH_BINDING_MISMATCH, "copy destination"},
        {copy_from_beyond, BH_BINDING_MISMATCH, "copy source"},
        {fill_beyond, BH_BINDING_MISMATCH, "fill"},
        {missing_source, BH_BINDING_MISMATCH, "buffer 99 is not attached"},
        {missing_kernel, BH_INVALID_KERNEL, "kernel 77 does not exist"},
        {read_only_target, BH_BINDING_MISMATCH, "buffer 3 is attached for reading only"},
        {written_but_read_only, BH_BINDING_MISMATCH, "buffer 3 is attached for reading only, and"},
        {bound_twice, BH_BINDING_MISMATCH, "was given twice"},
        {bound_beyond, BH_BINDING_MISMATCH, "ends at byte 1280 of a buffer of 1024 bytes"},
        {no_push, BH_BINDING_MISMATCH, "bytes of push constants, 0 were given"},
    };
    uint32_t *a = rig_buffer(1, 1024), *b = rig_buffer(2, 1024);
    rig_buffer(3, 1024);
    rig_attach_again(3, BHI_ATTACH_READ);
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        a[0] = 0;
        rig_begin();
        rig_fill(1, 0, 4, 5); /* does not run */
        rig_add(ADD, 1, 2, 1);
        cases[i].bad();
        rig_run_fails(cases[i].status, 2, cases[i].text);
        BHT_EQ(a[0] | b[0], 0);
        rig_begin();
        rig_fill(1, 0, 4, 6); /* and the next runs */
        rig_run_ok();
        BHT_EQ(a[0], 6);
    }
}

/* In a batch only the bad record fails. */
TEST(a_bad_record_among_others) {
    uint32_t *a = rig_buffer(1, 1024);
    for (int round = 0; round < 2; round++) { /* cold, then warm */
        a[0] = 0;
        for (int i = 0; i < 5; i++) {
            rig_begin();
            if (i == 2) {
                rig_copy(1, 0, 99, 0, 4);
            } else {
                rig_increment(INCREMENT, 1);
            }
        }
        BHT_TRUE(rig_run());
        for (int i = 0; i < 5; i++) {
            BHT_EQ(rig.results[i].status, i == 2 ? BH_BINDING_MISMATCH : BH_OK);
            BHT_EQ(rig.results[i].executed, i == 2 ? BH_EXECUTED_NO : BH_EXECUTED_YES);
        }
        BHT_EQ(a[0], 4);
    }
}

TEST(a_timed_record_knows_its_time) {
    rig_buffer(1, 1024);
    for (int timed = 0; timed < 2; timed++) {
        rig_begin();
        rig.records[0]->flags = timed ? BHI_RECORD_TIMED : 0;
        rig_increment(INCREMENT, 1);
        rig_run_ok();
        BHT_EQ(rig.results[0].device_ns > 0, timed);
        BHT_LE(rig.results[0].device_ns, rig.results[0].ended_ns - rig.results[0].started_ns);
    }
}

/* An id that is attached again is another buffer; what is detached is not there. */
TEST(buffers_come_and_go) {
    for (uint32_t round = 1; round <= 3; round++) {
        uint32_t *a = rig_buffer(1, 1024 * round), *b = rig_buffer(2, 1024);
        a[0] = round;
        rig_begin();
        rig_add(ADD, 1, 2, 10);
        rig_run_ok();
        BHT_EQ(b[0], 10 + round);
    }
    BHT_EQ(rig_counts().imported_bytes, 1024 * 3 + 1024);
    rig_detach(1);
    BHT_EQ(rig_counts().imported_bytes, 1024);
    bhi_backend_detach(rig.backend, 4711); /* unknown ids are fine */
    rig_begin();
    rig_add(ADD, 1, 2, 10);
    rig_run_fails(BH_BINDING_MISMATCH, 0, "buffer 1 is not attached");
    bhi_backend_kernel_destroy(rig.backend, ADD);
    bhi_backend_kernel_destroy(rig.backend, ADD);
    rig_begin();
    rig_prepare(ADD);
    rig_run_fails(BH_INVALID_KERNEL, 0, "does not exist");
}

/* A record of warm kernels may share a run with others. */
TEST(a_kernel_is_warm_once_it_has_run) {
    rig_buffer(1, 1024);
    rig_begin();
    rig_increment(INCREMENT, 1);
    const struct bhi_lane_record *record = rig.records[0];
    BHT_TRUE(!bhi_backend_warm(rig.backend, record));
    rig_run_ok();
    BHT_TRUE(bhi_backend_warm(rig.backend, record));
    bhi_backend_kernel_destroy(rig.backend, INCREMENT);
    BHT_TRUE(!bhi_backend_warm(rig.backend, record));
}
