/* Arrays of buffers: a binding with more than one. */
#include "rig.h"
#include "worker/vulkan/backend.h"

#include <stdio.h>

BHT_AT_START(bht_around(rig_open_usual, NULL))

#define ITEMS 64u
#define DATA  3u

/* What elements.comp does, one item after the other; no two touch the same word. */
static void compute(const int32_t *which, uint32_t all, uint32_t data[DATA][1 + 2 * ITEMS],
                    uint32_t result[ITEMS]) {
    uint32_t old[DATA][1 + 2 * ITEMS];
    memcpy(old, data, sizeof old);
    for (uint32_t i = 0; i < ITEMS; i++) {
        const uint32_t mine = (uint32_t)which[i] < DATA ? (uint32_t)which[i] : DATA - 1;
        uint32_t got = 0;
        if (i % 2 == 1) {
            got = old[mine][1 + i];
            data[mine][1 + i] = got + 1000;
            data[mine][0] += i;
        } else if (i % 4 == 2) {
            for (uint32_t n = 0; n < i; n++) {
                got += old[((uint32_t)which[i] + n) % 3][1 + 2 * n];
            }
        }
        result[i] = got + old[all < DATA ? all : DATA - 1][1 + 2 * i];
    }
}

static void elements_run(bool trusted, const int32_t *wanted, uint32_t all) {
    rig.trusted = trusted;
    uint32_t *data[DATA], expected[DATA][1 + 2 * ITEMS], result[ITEMS];
    for (uint32_t d = 0; d < DATA; d++) {
        data[d] = rig_buffer(10 + d, sizeof expected[d]);
        for (uint32_t i = 0; i < 1 + 2 * ITEMS; i++) {
            data[d][i] = (d + 1) * 10000 + i;
        }
        memcpy(expected[d], data[d], sizeof expected[d]);
    }
    int32_t *which = rig_buffer(1, ITEMS * sizeof *which);
    memcpy(which, wanted, ITEMS * sizeof *which);
    uint32_t *out = rig_buffer(2, sizeof result);
    rig_kernel(1, CODE(elements));
    rig_begin();
    rig_dispatch(
        1, ITEMS / 16, 1, 1,
        BINDINGS({.binding = 1, .element = 2, .buffer = 12, .access = BH_ACCESS_READ_WRITE},
                 READ(0, 1),
                 {.binding = 1, .element = 0, .buffer = 10, .access = BH_ACCESS_READ_WRITE},
                 {.binding = 1, .element = 1, .buffer = 11, .access = BH_ACCESS_READ_WRITE},
                 WRITE(2, 2)),
        &all, sizeof all);
    if (!bhi_vk(rig.backend)->device.own_elements) { /* it would take the same for neighbours */
        BHT_TRUE(!rig_is_lavapipe());
        rig_run_fails(BH_INVALID_KERNEL, 0,
                      "the index into an array of storage buffers is computed");
        return;
    }
    rig_run_ok();
    compute(which, all, expected, result);
    for (uint32_t i = 0; i < ITEMS; i++) {
        if (out[i] != result[i]) {
            BHT_FAIL("item %u: %u, not %u", i, out[i], result[i]);
        }
    }
    for (uint32_t d = 0; d < DATA; d++) {
        for (uint32_t i = 0; i < 1 + 2 * ITEMS; i++) {
            if (data[d][i] != expected[d][i]) {
                BHT_FAIL("buffer %u word %u: %u, not %u", d, i, data[d][i], expected[d][i]);
            }
        }
    }
    struct bhi_msg_kernel_info info = rig_reflection();
    BHT_EQ(info.bindings, 3);
    BHT_EQ(rig.bindings[0].count, 1);
    BHT_EQ(rig.bindings[1].count, DATA);
    BHT_EQ(rig.bindings[1].access, BH_ACCESS_READ_WRITE);
    BHT_EQ(rig.bindings[2].count, 1);
}

/* Every invocation takes its own, also where those beside it are switched off. */
TEST(elements_by_computed_indices) {
    int32_t which[ITEMS];
    for (uint32_t i = 0; i < ITEMS; i++) {
        which[i] = (int32_t)(i * 7 / 3 % DATA);
    }
    elements_run(false, which, 1);
    elements_run(true, which, 0);
}

/* What is out of range is the last one. */
TEST(elements_out_of_range) {
    static const int32_t far[8] = {-1, 0, INT32_MIN, 1, 3, 2, INT32_MAX, 1 << 20};
    int32_t which[ITEMS];
    for (uint32_t i = 0; i < ITEMS; i++) {
        which[i] = far[i / 2 % 8];
    }
    elements_run(false, which, UINT32_MAX);
    elements_run(false, which, 3);
}

/* Decorated NonUniform: only where the device says that it can. */
TEST(elements_that_differ_by_decoration) {
    uint32_t *which = rig_buffer(1, 64);
    uint32_t *out = rig_buffer(2, 64);
    for (uint32_t d = 0; d < DATA; d++) {
        uint32_t *data = rig_buffer(10 + d, 64);
        for (uint32_t i = 0; i < 16; i++) {
            data[i] = d * 100 + i;
            which[i] = i % 4;
        }
    }
    rig_kernel(1, CODE(elements_vary));
    rig_one(1, BINDINGS(READ(0, 1),
                        {.binding = 1, .element = 0, .buffer = 10, .access = BH_ACCESS_READ},
                        {.binding = 1, .element = 1, .buffer = 11, .access = BH_ACCESS_READ},
                        {.binding = 1, .element = 2, .buffer = 12, .access = BH_ACCESS_READ},
                        WRITE(2, 2)));
    if (!bhi_vk(rig.backend)->device.enabled.v12.shaderStorageBufferArrayNonUniformIndexing) {
        rig_run_fails(BH_INVALID_KERNEL, 0, "NonUniform");
    } else {
        rig_run_ok();
        for (uint32_t i = 0; i < 16; i++) {
            BHT_EQ(out[i], (i % 4 < DATA ? i % 4 : DATA - 1) * 100 + i);
        }
    }
}

#define ELEMENT(e) {.binding = 0, .element = e, .buffer = 1 + (e), .access = BH_ACCESS_READ_WRITE}
#define FACTOR(e)                                                                                  \
    {.binding = 1, .element = e, .buffer = 5, .access = BH_ACCESS_READ, .offset = 256 * (e)}

/* Its length is the pipeline's: constant indices, of uniform buffers, too. */
TEST(arrays_of_a_specialized_length) {
    uint32_t *data[3];
    for (uint32_t d = 0; d < 3; d++) {
        data[d] = rig_buffer(1 + d, 4);
        *data[d] = 10 + d;
    }
    uint32_t *factors = rig_buffer(5, 4096);
    factors[1] = 5;  /* factors[0].y */
    factors[64] = 3; /* factors[1].x */
    const struct bhi_spec_constant three = {0, 4, 3};
    rig_kernel_entry(1, CODE(array_sized), "main", &three, 1);
    for (uint32_t d = 0; d < 2; d++) { /* the same and another: its sets are its own */
        rig_one(
            1,
            BINDINGS(
                {.binding = 0, .element = 0, .buffer = 1 + 2 * d, .access = BH_ACCESS_READ_WRITE},
                ELEMENT(1),
                {.binding = 0, .element = 2, .buffer = 3 - 2 * d, .access = BH_ACCESS_READ_WRITE},
                FACTOR(0), FACTOR(1)));
        rig_run_ok();
        BHT_EQ(*data[2 * d], 11 * 3 + 5);
    }
}

TEST(each_element_once) {
    static const struct {
        struct rig_binding third;
        const char *text;
    } cases[] = {
        {ELEMENT(0), "set 0 binding 0 element 0 (\"data\") of kernel \"k1\" was given twice"},
        {ELEMENT(2), "set 0 binding 0 element 2 (\"data\") was given, but kernel \"k1\" has 2 "
                     "there"},
        {READ(2, 3), "set 0 binding 2 was given, but kernel"},
        {{.binding = 0, .element = 1, .buffer = 2, .access = BH_ACCESS_READ},
         "set 0 binding 0 element 1 (\"data\") of kernel \"k1\" is bound for reading, but the "
         "kernel "
         "writes to it"},
        {{.binding = 0, .element = 1, .buffer = 9, .access = BH_ACCESS_READ_WRITE},
         "buffer 9 is not attached, and bound as set 0 binding 0 element 1 (\"data\")"},
        {{.binding = 0, .element = 1, .buffer = 2, .access = BH_ACCESS_READ_WRITE, .size = 5},
         "set 0 binding 0 element 1 (\"data\") of kernel \"k1\": the range ends at byte 5 of a "
         "buffer of 4"},
        {{.binding = 1, .element = 1, .buffer = 5, .access = BH_ACCESS_READ},
         "set 0 binding 1 element 1 (\"factors\") of kernel \"k1\" was given twice"},
    };
    for (uint32_t d = 0; d < 3; d++) {
        rig_buffer(1 + d, 4);
    }
    rig_buffer(5, 4096);
    rig_kernel(1, CODE(array_sized));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig_one(1, BINDINGS(ELEMENT(0), FACTOR(0), FACTOR(1), cases[i].third));
        rig_run_fails(BH_BINDING_MISMATCH, 0, cases[i].text);
    }
    rig_one(1, BINDINGS(ELEMENT(0), FACTOR(0), FACTOR(1)));
    rig_run_fails(BH_BINDING_MISMATCH, 0,
                  "set 0 binding 0 element 1 (\"data\") of kernel \"k1\" was not given");
}

/* -- what is refused ------------------------------------------------------------------------ */

static void refused(const uint32_t *code, size_t bytes, const struct bhi_spec_constant *constant,
                    bh_status status, const char *text) {
    rig_kernel_entry(1, code, bytes, "main", constant, !!constant);
    rig_begin();
    rig_prepare(1);
    rig_run_fails(status, 0, text);
}

/* Wrong results without an error, on this driver. */
TEST(indices_that_are_taken_from_one_invocation) {
    refused(CODE(array_uniform), NULL, BH_INVALID_KERNEL,
            "the index into an array of uniform buffers is computed");
    const bool own = bhi_vk(rig.backend)->device.own_elements;
    refused(CODE(array_length), NULL, BH_INVALID_KERNEL,
            own ? "the index of the buffer is computed"
                : "the index into an array of storage buffers is computed");
}

TEST(arrays_over_limits) {
    char most[256];
    const uint32_t most_buffers =
        bhi_vk(rig.backend)->device.limits.maxPerStageDescriptorStorageBuffers - 1;
    snprintf(most, sizeof most,
             "storage buffers: 40, the device allows %u (maxPerStageDescriptorStorageBuffers, less "
             "one for the guard)",
             most_buffers);
    const struct {
        uint32_t length;
        const char *text;
    } cases[] = {
        {300, "set 0 binding 0 (\"data\") is an array of 300 buffers, a kernel binds 256 at most"},
        {255, "the kernel binds more than 256 buffers"},
        {40, most},
    };
    /* lavapipe from Mesa 25 on allows a million: no kernel that we take has more. */
    const size_t count = sizeof cases / sizeof *cases - (most_buffers > 40);
    for (size_t i = 0; i < count; i++) {
        const struct bhi_spec_constant length = {0, 4, cases[i].length};
        refused(CODE(array_sized), &length, BH_LIMIT_EXCEEDED, cases[i].text);
    }
}
