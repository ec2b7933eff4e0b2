/* Dispatches: bindings, push constants, specialization, entry points. */
#include "rig.h"
#include "worker/vulkan/backend.h"

#include <stdio.h>
#include <stdlib.h>

BHT_AT_START(bht_around(rig_open_usual, NULL))

TEST(saxpy_runs) {
    float *x = rig_buffer(1, 1000 * sizeof *x);
    float *y = rig_buffer(2, 1000 * sizeof *y);
    for (int i = 0; i < 1000; i++) {
        x[i] = (float)i;
        y[i] = 1.0f;
    }
    rig_kernel(7, CODE(saxpy));
    const struct {
        float a;
        uint32_t n;
    } arguments = {2.0f, 1000};
    rig_begin();
    rig_dispatch(7, 16, 1, 1, BINDINGS(READ(0, 1), BOTH(1, 2)), &arguments, sizeof arguments);
    rig_run_ok();
    for (int i = 0; i < 1000; i++) {
        BHT_TRUE(y[i] == 2.0f * (float)i + 1.0f);
    }
}

/* Four sets, one of them empty, gaps, uniform buffers at offsets, given in no order. */
TEST(many_sets_with_gaps) {
    uint32_t *a = rig_buffer(1, 4);
    uint32_t *b = rig_buffer(2, 4);
    uint32_t *c = rig_buffer(3, 4);
    uint32_t *out = rig_buffer(4, 12);
    uint32_t *uniforms = rig_buffer(5, 4096);
    *a = 1;
    *b = 2;
    *c = 3;
    uniforms[256] = 40; /* at byte 1024 */
    uniforms[259] = 2;
    uniforms[512] = 77; /* at byte 2048 */
    rig_kernel(1, CODE(places));
    rig_one(1, BINDINGS({.set = 3,
                         .binding = 6,
                         .buffer = 5,
                         .access = BH_ACCESS_READ,
                         .offset = 2048,
                         .size = 16},
                        {.set = 2, .binding = 1, .buffer = 4, .access = BH_ACCESS_WRITE},
                        {.set = 0, .binding = 700, .buffer = 3, .access = BH_ACCESS_READ},
                        {.set = 0, .binding = 0, .buffer = 1, .access = BH_ACCESS_READ},
                        {.set = 3,
                         .binding = 5,
                         .buffer = 5,
                         .access = BH_ACCESS_READ,
                         .offset = 1024,
                         .size = 64},
                        {.set = 0, .binding = 3, .buffer = 2, .access = BH_ACCESS_READ}));
    rig_run_ok();
    BHT_EQ(out[0], 321);
    BHT_EQ(out[1], 42);
    BHT_EQ(out[2], 77);

    struct bhi_msg_kernel_info info = rig_reflection();
    BHT_EQ(info.kernel, 1);
    BHT_EQ(info.bindings, 6); /* the unused one is not there */
    static const struct {
        uint32_t set, binding, kind, access;
        const char *name;
    } expected[] = {
        {0, 0, BH_BINDING_STORAGE_BUFFER, BH_ACCESS_READ, "A"},
        {0, 3, BH_BINDING_STORAGE_BUFFER, BH_ACCESS_READ, "B"},
        {0, 700, BH_BINDING_STORAGE_BUFFER, BH_ACCESS_READ, "C"},
        {2, 1, BH_BINDING_STORAGE_BUFFER, BH_ACCESS_WRITE, "Out"},
        {3, 5, BH_BINDING_UNIFORM_BUFFER, BH_ACCESS_READ, "factors"},
        {3, 6, BH_BINDING_UNIFORM_BUFFER, BH_ACCESS_READ, "V"},
    };
    for (uint32_t i = 0; i < 6; i++) {
        BHT_EQ(rig.bindings[i].kernel, 1);
        BHT_EQ(rig.bindings[i].index, i);
        BHT_EQ(rig.bindings[i].set, expected[i].set);
        BHT_EQ(rig.bindings[i].binding, expected[i].binding);
        BHT_EQ(rig.bindings[i].kind, expected[i].kind);
        BHT_EQ(rig.bindings[i].access, expected[i].access);
        BHT_STR_EQ(rig.bindings[i].name, expected[i].name);
    }
    rig_no_reflection(); /* once each */
}

/* The guard's set of a kernel without buffers is the first: that of the kernel before is bound
 * again. */
TEST(nothing_between_two) {
    float *x = rig_buffer(1, 16), *y = rig_buffer(2, 16);
    rig_kernel(1, CODE(saxpy));
    rig_kernel(2, CODE(nothing));
    const struct {
        float a;
        uint32_t n;
    } arguments = {2, 4};
    x[3] = 3;
    y[3] = 1;
    rig_begin();
    for (int i = 0; i < 3; i++) {
        rig_dispatch(1, 1, 1, 1, BINDINGS(READ(0, 1), BOTH(1, 2)), &arguments, sizeof arguments);
        rig_dispatch(2, 1, 1, 1, NULL, 0, NULL, 0);
    }
    rig_run_ok();
    BHT_EQ(y[3], 19);
}

/* Buffers of eight_sets: 1 to 7 are read, 8 and 9 count. */
static void add_all(uint64_t kernel, uint64_t rounds, uint64_t out) {
    rig_dispatch(kernel, 1, 1, 1,
                 BINDINGS({.set = 0, .binding = 0, .buffer = 1, .access = BH_ACCESS_READ},
                          {.set = 1, .binding = 0, .buffer = 2, .access = BH_ACCESS_READ},
                          {.set = 2, .binding = 1, .buffer = 3, .access = BH_ACCESS_READ},
                          {.set = 3, .binding = 0, .buffer = rounds, .access = BH_ACCESS_READ},
                          {.set = 4, .binding = 0, .buffer = 4, .access = BH_ACCESS_READ},
                          {.set = 5, .binding = 0, .buffer = 5, .access = BH_ACCESS_READ},
                          {.set = 6, .binding = 0, .buffer = 6, .access = BH_ACCESS_READ},
                          {.set = 7, .binding = 0, .buffer = out, .access = BH_ACCESS_READ_WRITE},
                          {.set = 7, .binding = 3, .buffer = 7, .access = BH_ACCESS_READ}),
                 NULL, 0);
}

/* Where no set is free, the guard's word is in one of the kernel's own; each record still has its
 * own word, and each group of buffers its own sets. */
TEST(all_sets_are_used) {
    for (int trusted = 0; trusted < 2; trusted++) {
        rig_open(NULL);
        for (uint64_t id = 1; id <= 7; id++) {
            uint32_t *data = rig_buffer(id, 64 * 4);
            for (uint32_t i = 0; i < 64; i++) {
                data[i] = (uint32_t)id * 100;
            }
        }
        uint32_t *y = rig_buffer(8, 64 * 4), *z = rig_buffer(9, 64 * 4);
        uint32_t *rounds = rig_buffer(10, 16), *endless = rig_buffer(11, 16);
        *rounds = 2;
        *endless = UINT32_MAX;
        rig.trusted = trusted;
        rig_kernel(1, CODE(eight_sets));
        if (bhi_vk(rig.backend)->device.limits.maxBoundDescriptorSets < 8) {
            rig_begin();
            add_all(1, 10, 8);
            rig_run_fails(BH_LIMIT_EXCEEDED, 0, "descriptor sets: 8, the device allows ");
            continue;
        }
        const uint32_t once = 100 + 101 + 200 + 300 + 400 + 500 + 600 + 700; /* 100 ^ 1 is 101 */
        for (uint32_t turn = 1; turn <= 2; turn++) {
            for (int record = 0; record < 2; record++) {
                rig_begin();
                add_all(1, 10, 8);
                add_all(1, 10, 9);
                add_all(1, 10, 9);
                add_all(1, 10, 9);
            }
            rig_run_ok();
            for (uint32_t i = 0; i < 64; i++) {
                BHT_EQ(y[i], 2 * turn * once);
                BHT_EQ(z[i], 6 * turn * once);
            }
        }
        for (int record = 0; !trusted && record < 3; record++) { /* the second would not end */
            rig_begin();
            add_all(1, record == 1 ? 11 : 10, record == 1 ? 9 : 8);
            if (record == 1) {
                bhi_backend_abort(rig.backend, rig.seq);
            }
        }
        if (!trusted) {
            BHT_TRUE(rig_run());
            BHT_EQ(rig.results[0].status, BH_OK);
            BHT_EQ(rig.results[1].status, BH_DEADLINE);
            BHT_EQ(rig.results[2].status, BH_OK);
            BHT_EQ(y[63], 6 * once);
            BHT_EQ(z[63], 12 * once);
        }
    }
}

TEST(aliases_are_one_binding) {
    float *in = rig_buffer(1, 64);
    uint32_t *out = rig_buffer(2, 64);
    in[2] = 21.0f;
    ((uint32_t *)in)[1] = 5;
    rig_kernel(1, CODE(alias));
    rig_one(1, BINDINGS(READ(0, 1), BOTH(1, 2)));
    rig_run_ok();
    BHT_EQ(out[0], 5);
    BHT_TRUE(((float *)out)[1] == 42.0f);
    struct bhi_msg_kernel_info info = rig_reflection();
    BHT_EQ(info.bindings, 2);
}

/* What one of them writes is written, and the largest block must fit. */
TEST(aliases_need_what_any_of_them_needs) {
    static struct bhi_module_bindings all;
    struct bhi_error error = {.status = BH_OK};
    BHT_TRUE(bhi_reflect(kernel_alias_parts, sizeof kernel_alias_parts / 4, "main", NULL, 0, &all,
                         &error));
    BHT_EQ(all.binding_count, 4);
    for (int i = 0; i < 4; i += 3) {
        BHT_EQ(all.bindings[i].access, BH_ACCESS_READ_WRITE);
        BHT_TRUE(all.bindings[i].stores && !all.bindings[i].measured);
    }
    BHT_EQ(all.bindings[1].min_bytes, 48);
    BHT_EQ(all.bindings[2].min_bytes, 48);
    BHT_EQ(all.bindings[2].access, BH_ACCESS_READ);
    BHT_TRUE(!all.bindings[2].stores);
}

TEST(push_constants_arrive) {
    uint32_t *out = rig_buffer(1, 64);
    rig_kernel(1, CODE(push));
    rig_kernel(2, CODE(unused_push));
    rig_kernel(3, CODE(nothing));
    uint32_t words[15];
    for (uint32_t i = 0; i < 15; i++) {
        words[i] = 1000 + i;
    }
    rig_begin();
    rig_dispatch(1, 1, 1, 1, BINDINGS(WRITE(0, 1)), words, sizeof words);
    rig_run_ok();
    BHT_MEM_EQ(out, words, sizeof words);
    struct bhi_msg_kernel_info info = rig_reflection();
    BHT_EQ(info.push_bytes, sizeof words);

    rig_begin(); /* a block that is declared and not used is still to be given */
    rig_dispatch(2, 1, 1, 1, BINDINGS(WRITE(0, 1)), words, 4);
    rig_run_ok();
    BHT_EQ(out[0], 5);

    rig_begin();
    rig_dispatch(3, 1, 1, 1, NULL, 0, NULL, 0);
    rig_run_ok();
}

static void check_spec(const uint32_t *code, size_t bytes) {
    uint32_t *out = rig_buffer(1, 4096);
    const float scale = 0.25f;
    uint32_t scale_bits;
    memcpy(&scale_bits, &scale, sizeof scale);
    const struct bhi_spec_constant constants[] = {
        {4, 4, scale_bits}, {0, 4, 5}, {1, 4, 3}, {2, 4, 9}, {3, 4, 1}, {99, 4, 1},
    };
    rig_kernel(1, code, bytes);
    rig_kernel_entry(2, code, bytes, "main", constants, 6);
    for (uint64_t kernel = 1; kernel <= 2; kernel++) {
        const uint32_t x = kernel == 1 ? 1 : 5, y = kernel == 1 ? 1 : 3;
        const uint32_t factor = kernel == 1 ? 3 : 9;
        memset(out, 0, 4096);
        rig_one(kernel, BINDINGS(WRITE(0, 1)));
        rig_run_ok();
        BHT_EQ(out[0], x);
        BHT_EQ(out[1], y);
        BHT_EQ(out[2], kernel == 2);
        float product;
        memcpy(&product, &out[3], sizeof product);
        BHT_TRUE(product == (kernel == 1 ? 1.5f : 0.25f) * (float)(x * y * 2));
        for (uint32_t i = 0; i < x * y * 2; i++) {
            BHT_EQ(out[4 + i], factor * i);
        }
        BHT_EQ(out[4 + x * y * 2], 0);
        struct bhi_msg_kernel_info info = rig_reflection();
        BHT_EQ(info.local_x, x);
        BHT_EQ(info.local_y, y);
        BHT_EQ(info.local_z, 2);
    }
}

TEST(specialization) {
    check_spec(CODE(spec)); /* the WorkgroupSize builtin */
}

TEST(specialization_local_size_id) {
    check_spec(CODE(spec_13)); /* SPIR-V 1.6 */
}

TEST(specialization_of_a_computed_size) {
    uint32_t *out = rig_buffer(1, 4);
    size_t bytes;
    uint32_t *code = rig_load(BACKEND_KERNELS, "spec_op", &bytes);
    const struct bhi_spec_constant eight = {0, 4, 8};
    rig_kernel_entry(1, code, bytes, "main", &eight, 1);
    rig_one(1, BINDINGS(WRITE(0, 1)));
    rig_run_ok();
    BHT_EQ(*out, 30);
    struct bhi_msg_kernel_info info = rig_reflection();
    BHT_EQ(info.local_x, 30);
    BHT_EQ(info.local_y, 4);
    BHT_EQ(info.local_z, 1);
}

TEST(entry_points) {
    uint32_t *a = rig_buffer(1, 4);
    uint32_t *b = rig_buffer(2, 4);
    size_t bytes;
    uint32_t *code = rig_load(BACKEND_KERNELS, "entries", &bytes);
    rig_kernel_entry(1, code, bytes, "seven", NULL, 0);
    /* Two of one function: SPIRV-Cross throws when it is asked for the first or the second. */
    rig_kernel_entry(2, code, bytes, "twice", NULL, 0);
    rig_kernel_entry(3, code, bytes, "double", NULL, 0);
    for (uint32_t kernel = 2; kernel <= 3; kernel++) {
        *a = *b = 0;
        rig_one(1, BINDINGS(WRITE(0, 1)));
        rig_dispatch(kernel, 1, 1, 1, BINDINGS(READ(0, 1), WRITE(1, 2)), NULL, 0);
        rig_run_ok();
        BHT_EQ(*a, 7);
        BHT_EQ(*b, 14);
    }
}

TEST(offsets_bound_the_view) {
    rig_buffer(1, 1 << 16);
    uint32_t *out = rig_buffer(2, 64);
    uint32_t *none = rig_buffer(3, 0);
    none[0] = 1234;
    rig_kernel(1, CODE(length));
    rig_one(
        1,
        BINDINGS({.binding = 0, .buffer = 1, .access = BH_ACCESS_READ, .offset = 4096, .size = 400},
                 WRITE(1, 2), BOTH(2, 3)));
    rig_run_ok();
    BHT_EQ(out[0], 100);
    /* A zero-size buffer has no elements, and writes to it vanish. Without a null descriptor it has
     * one, in its own page. */
    const bool empty = bhi_vk(rig.backend)->device.enabled.robustness2.nullDescriptor;
    BHT_TRUE(empty || !rig_is_lavapipe());
    BHT_EQ(out[1], empty ? 0 : 1);
    BHT_EQ(none[0], empty ? 1234 : 7);
}

/* A loop that is cut short, with constants that were given and with such as were not. */
TEST(loops_and_defaults) {
    static const struct {
        uint32_t count;
        struct bhi_spec_constant given[2];
        const char *left; /* NULL: short enough */
    } cases[] = {
        {0,
         {{0}},
         "specialization constants were left at their defaults: 0 (local size x) 1, 3 (\"many\") "
         "100000"},
        {1, {{3, 4, 90000}}, "specialization constant 0 (local size x) was left at its default 1"},
        {1, {{0, 4, 1}}, "specialization constant 3 (\"many\") was left at its default 100000"},
        {2, {{0, 4, 1}, {3, 4, 90000}}, ""},
        {1, {{0, 4, 64}}, NULL},
    };
    uint32_t *data = rig_buffer(1, 100001 * 4);
    for (uint32_t i = 0; i < 100000; i++) {
        data[1 + i] = 1;
    }
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool cut = cases[i].left && !bhi_vk(rig.backend)->device.whole_loops;
        char text[512] = "";
        if (cut && cases[i].left[0] != '\0') {
            snprintf(text, sizeof text, "; of kernel \"k%u\" %s, which may be the cause", 1 + i,
                     cases[i].left);
        }
        data[0] = 0;
        rig_kernel_entry(1 + i, CODE(long_spec), "main", cases[i].given, cases[i].count);
        rig_one(1 + i, BINDINGS(BOTH(0, 1)));
        BHT_TRUE(rig_run());
        BHT_EQ(rig.results[0].status, cut ? BH_LOOP_LIMIT : BH_OK);
        if (cut) {
            BHT_EQ(rig.errors[0].told.reason, BH_REASON_LOOP_CUT);
            BHT_STR_EQ(rig.errors[0].told.text, text);
        } else if (!cases[i].left) {
            BHT_EQ(data[0], 100000);
        }
    }
}
