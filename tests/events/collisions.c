/* Case 31: kernels that are different stay different whatever their hashes are. The test build of
 * the library makes hashes that collide: in 64 bits, and in all 256. And a race of case 34. */
#include "seam.h"
#include "stage.h"

static void both_run(size_t bytes, bool one_hash) {
    bht_collide(bytes);
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    bh_kernel *twice = fx_kernel(s.context, "twice");
    uint8_t one[32], other[32];
    bh_kernel_hash(twice, one);
    bh_kernel_hash(s.square, other);
    BHT_MEM_EQ(one, other, bytes);
    BHT_EQ(memcmp(one, other, sizeof one) == 0, one_hash);
    const bh_binding bindings[] = {bh_bind_read(0, s.x), bh_bind_write(1, s.z)};
    bh_event *squared = ev_square(&s, s.a, s.x, s.y, NULL, 0);
    bh_event *doubled = fx_command(s.a, fx_dispatch(twice, bindings, 2), NULL, 0);
    ev_ready(squared);
    ev_ready(doubled);
    ev_squares(s.y, 1);
    const float *floats = (const float *)(const void *)fx_pointer(s.z);
    for (uint32_t i = 0; i < STAGE_FLOATS; i++) {
        BHT_TRUE(floats[i] == 2.0f * (float)i);
    }
    /* And what is the same is found among them. */
    const bh_stats before = fx_stats(s.context);
    fx_kernel(s.context, "twice");
    const bh_stats after = fx_stats(s.context);
    BHT_EQ(after.kernels, before.kernels);
    BHT_EQ(after.kernels_shared, before.kernels_shared + 1);
}

TEST(case_31_two_sources_with_one_64_bit_hash) {
    both_run(8, false);
}

TEST(case_31_two_sources_with_one_hash) {
    both_run(32, true);
}

TEST(case_31_two_noises_with_one_hash) {
    bht_collide(32);
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    bh_kernel_options options = {.struct_size = sizeof options};
    const bh_stats before = fx_stats(s.context);
    for (options.noise = 0; options.noise < 3; options.noise++) {
        fx_kernel_with(s.context, "twice", &options);
    }
    const bh_stats after = fx_stats(s.context);
    BHT_EQ(after.kernels, before.kernels + 3);
    BHT_EQ(after.kernels_shared, before.kernels_shared);
}

static struct stage *meanwhile;
static bh_kernel *first;

static void create_meanwhile(void *body) {
    (void)body;
    first = fx_kernel(meanwhile->context, "twice");
}

/* Another thread makes the same one between our look and our entry: there is one in the end. */
TEST(case_34_created_meanwhile) {
    struct stage s = stage_open_with(NULL, FX_SECONDS);
    const bh_stats before = fx_stats(s.context);
    meanwhile = &s;
    bht_at_step("kernel_kept", 1, create_meanwhile);
    bh_kernel *second = fx_kernel(s.context, "twice");
    bht_at_step("kernel_kept", 1, NULL);
    BHT_TRUE(first && first != second);
    const bh_stats after = fx_stats(s.context);
    BHT_EQ(after.kernels, before.kernels + 1);
    BHT_EQ(after.kernels_shared, before.kernels_shared + 1);
    ev_well(&s);
}
