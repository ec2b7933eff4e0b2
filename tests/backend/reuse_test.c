/* What is kept for the next time, for how long, and that it is forgotten when it must be. */
#include "rig.h"
#include "worker/vulkan/backend.h"

#include <stdlib.h>
#include <string.h>

BHT_AT_START(bht_around(rig_open_usual, NULL))

static void add_ok(uint64_t kernel, uint64_t from, uint64_t to, uint32_t c) {
    rig_begin();
    rig_add(kernel, from, to, c);
    rig_run_ok();
}

TEST(a_repeated_record_is_one_recording) {
    uint32_t *x = rig_buffer(1, 1024);
    uint32_t *y = rig_buffer(2, 1024);
    rig_kernel(1, CODE(add));
    uint32_t recordings = 0;
    for (uint32_t i = 0; i < 50; i++) {
        x[0] = i;
        add_ok(1, 1, 2, 7);
        BHT_EQ(y[0], i + 7);
        if (i == 0) {
            recordings = bhi_vk(rig.backend)->recordings.count;
        }
    }
    BHT_EQ(bhi_vk(rig.backend)->recordings.count, recordings);
    BHT_EQ(bhi_vk(rig.backend)->groups.count, 1);
    /* Another constant: another recording, the same descriptor set. */
    add_ok(1, 1, 2, 8);
    BHT_EQ(y[0], 49 + 8);
    BHT_EQ(bhi_vk(rig.backend)->groups.count, 1);
    /* What has the same hash and the same size is not the same yet. */
    struct bhi_vk_recordings *all = &bhi_vk(rig.backend)->recordings;
    struct bhi_vk_recording *newest = BHI_CONTAINER(all->used.prev, struct bhi_vk_recording, used);
    uint8_t *bytes = bht_own(malloc(newest->size));
    memcpy(bytes, newest->bytes, newest->size);
    BHT_EQ(bhi_vk_recording_find(all, newest->hash, bytes, newest->size), newest);
    bytes[newest->size - 1] ^= 1;
    BHT_EQ(bhi_vk_recording_find(all, newest->hash, bytes, newest->size), NULL);
}

/* More distinct records than are kept: all run right, and again in the same order. */
TEST(recordings_are_bounded) {
    uint32_t *x = rig_buffer(1, 1024);
    uint32_t *y = rig_buffer(2, 1024);
    x[0] = 1;
    rig_kernel(1, CODE(add));
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 300; i++) {
            add_ok(1, 1, 2, i);
            BHT_EQ(y[0], i + 1);
        }
    }
    BHT_EQ(bhi_vk(rig.backend)->recordings.count, 256);
}

TEST(recorded_bytes_are_bounded) {
    struct bhi_vk_recordings *recordings = &bhi_vk(rig.backend)->recordings;
    recordings->max_bytes = recordings->bytes + 1000;
    rig_buffer(1, 1024);
    rig_buffer(2, 1024);
    rig_kernel(1, CODE(add));
    for (uint32_t i = 0; i < 40; i++) {
        add_ok(1, 1, 2, i);
        BHT_LE(recordings->bytes, recordings->max_bytes);
    }
    BHT_GT(recordings->count, 2); /* and those that fit are kept */
}

TEST(pipelines_are_bounded) {
    const struct rig_options options = {.max_pipelines = 3};
    rig_open(&options);
    uint32_t *x = rig_buffer(1, 1024);
    uint32_t *y = rig_buffer(2, 1024);
    enum { KERNELS = 8 };
    for (uint64_t id = 1; id <= KERNELS; id++) {
        rig_kernel(id, CODE(add));
    }
    unsigned seed = 17;
    for (uint32_t i = 0; i < 60; i++) {
        x[3] = i;
        add_ok(1 + (uint64_t)rand_r(&seed) % KERNELS, 1, 2, i);
        BHT_EQ(y[3], 2 * i);
        BHT_LE(rig_counts().pipelines, 3);
    }
    /* One record that needs more than that: none of them goes while it is in use. */
    rig_begin();
    for (uint64_t id = 1; id <= KERNELS; id++) {
        rig_add(id, 1, 2, (uint32_t)id);
    }
    rig_run_ok();
    BHT_EQ(y[3], 59 + KERNELS);
    add_ok(1, 1, 2, 1);
    rig_begin(); /* a miss makes room again */
    rig_kernel(100, CODE(add));
    rig_add(100, 1, 2, 1);
    rig_run_ok();
    BHT_LE(rig_counts().pipelines, 3);
}

/* The least recently used goes first. */
TEST(eviction_order) {
    const struct rig_options options = {.max_pipelines = 2};
    rig_open(&options);
    rig_buffer(1, 1024);
    rig_buffer(2, 1024);
    static const uint64_t uses[] = {1, 2, 1, 3};
    for (uint64_t id = 1; id <= 3; id++) {
        rig_kernel(id, CODE(add));
    }
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        add_ok(uses[i], 1, 2, 1); /* the third is a kept recording */
    }
    static const enum bhi_kernel_state expected[] = {BHI_KERNEL_READY, BHI_KERNEL_REFLECTED,
                                                     BHI_KERNEL_READY};
    for (uint64_t id = 1; id <= 3; id++) {
        const struct bhi_vk_kernel *kernel = bhi_map_get(&bhi_vk(rig.backend)->kernels.map, id);
        BHT_EQ(kernel->state, expected[id - 1]);
    }
}

/* An id that is attached again is another buffer: nothing kept for the old one is used. */
TEST(attach_and_detach) {
    uint32_t recordings = 0;
    rig_kernel(1, CODE(add));
    rig_buffer(2, 1024);
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t *x = rig_buffer(1, 1024);
        uint32_t *y = rig.buffers[0].id == 2 ? rig.buffers[0].data : rig.buffers[1].data;
        x[9] = i;
        add_ok(1, 1, 2, 100);
        BHT_EQ(y[9], i + 100);
        recordings = i == 0 ? bhi_vk(rig.backend)->recordings.count : recordings;
        /* What is empty is used again. */
        BHT_LE(bhi_vk(rig.backend)->recordings.count, recordings + 1);
        if (i % 2 == 0) {
            rig_detach(1);
            rig_begin();
            rig_dispatch(
                1, 4, 1, 1,
                BINDINGS({.binding = 0, .buffer = 1, .access = BH_ACCESS_READ, .size = 1024},
                         WRITE(1, 2)),
                &(uint32_t){100}, 4);
            rig_run_fails(BH_BINDING_MISMATCH, 0, "buffer 1 is not attached");
        }
        BHT_EQ(rig_counts().imported_bytes, i % 2 == 0 ? 1024 : 2048);
        BHT_LE(bhi_vk(rig.backend)->groups.count, 1);
    }
    rig_buffer(2, 1024); /* the second of them */
    rig_buffer(1, 1024);
    add_ok(1, 1, 2, 100);
    BHT_EQ(bhi_vk(rig.backend)->groups.count, 1);
    bhi_backend_detach(rig.backend, 4711); /* unknown ids are fine */
}

TEST(kernels_come_and_go) {
    uint32_t *x = rig_buffer(1, 1024);
    uint32_t *y = rig_buffer(2, 1024);
    x[0] = 5;
    for (uint32_t i = 0; i < 10; i++) {
        rig_kernel(1, CODE(add)); /* created again: replaced */
        add_ok(1, 1, 2, i);
        BHT_EQ(y[0], 5 + i);
        BHT_EQ(rig_counts().pipelines, 1);
    }
    bhi_backend_kernel_destroy(rig.backend, 1);
    bhi_backend_kernel_destroy(rig.backend, 1);
    rig_begin();
    rig_add(1, 1, 2, 0);
    rig_run_fails(BH_INVALID_KERNEL, 0, "kernel 1 does not exist");
    rig_no_reflection(); /* they are gone */
    BHT_EQ(rig_counts().pipelines, 0);
}

/* Descriptor sets beyond the limit, each with another pair of buffers. */
TEST(groups_are_bounded) {
    bhi_vk(rig.backend)->groups.limit = 10;
    rig_kernel(1, CODE(add));
    for (uint64_t id = 1; id <= 40; id++) {
        ((uint32_t *)rig_buffer(id, 1024))[0] = (uint32_t)id;
    }
    rig_begin(); /* more in one record than are kept: all stay while it does */
    for (uint64_t id = 1; id < 40; id++) {
        rig_add(1, id, id + 1, 1);
    }
    rig_run_ok();
    BHT_EQ(bhi_vk(rig.backend)->groups.count, 39);
    BHT_EQ(((uint32_t *)rig.buffers[39].data)[0], 40);
    for (uint32_t i = 0; i < 600; i++) { /* others push the recording out, and with it the sets */
        add_ok(1, 1, 2, i);
    }
    BHT_EQ(bhi_vk(rig.backend)->groups.count, 10);
    add_ok(1, 20, 21, 1); /* a new one takes the place of one that is only kept */
    BHT_EQ(bhi_vk(rig.backend)->groups.count, 10);
}

/* Descriptor sets beyond the bytes that a driver has for them: what is only kept gives way, and
 * what one record needs at once has to fit. */
TEST(descriptor_bytes_are_bounded) {
    bhi_vk(rig.backend)->groups.max_bytes = 100000;
    rig_kernel(1, CODE(add));
    for (uint64_t id = 1; id <= 40; id++) {
        ((uint32_t *)rig_buffer(id, 1024))[0] = (uint32_t)id;
    }
    for (uint64_t id = 1; id < 40; id++) {
        add_ok(1, id, id + 1, 1);
        BHT_EQ(((uint32_t *)rig.buffers[id].data)[0], id + 1);
        BHT_LE(bhi_vk(rig.backend)->groups.bytes, 100000);
        BHT_GT(bhi_vk(rig.backend)->groups.bytes, 0);
    }
    rig_begin();
    for (uint64_t id = 1; id < 40; id++) {
        rig_add(1, id, id + 1, 1);
    }
    rig_run_fails(BH_OUT_OF_HOST_MEMORY, 19, "more descriptor sets than a worker may have");
    /* And the worker goes on. */
    add_ok(1, 1, 2, 5);
    BHT_EQ(((uint32_t *)rig.buffers[1].data)[0], 6);
}

TEST(a_thousand_buffers) {
    rig_kernel(1, CODE(add));
    for (uint64_t id = 1; id <= 1000; id++) {
        rig_buffer(id, 256);
    }
    rig_begin();
    for (uint64_t id = 1; id < 1000; id++) {
        rig_add(1, id, id + 1, 1);
    }
    rig_run_ok();
    BHT_EQ(((uint32_t *)rig.buffers[999].data)[63], 999);
}

TEST(the_least_recently_used_sets_go_first) {
    struct bhi_vk_groups *groups = &bhi_vk(rig.backend)->groups;
    static const uint64_t pairs[][2] = {{1, 3}, {1, 4}, {1, 3}, {2, 3}};
    static const uint64_t left[][2] = {{1, 2}, {1, 3}, {2, 3}}; /* a recording has the first */
    struct bhi_group_range ranges[2];
    struct bhi_error error;
    rig_kernel(1, CODE(add));
    for (uint64_t id = 1; id <= 4; id++) {
        rig_buffer(id, 1024);
    }
    add_ok(1, 1, 2, 1);
    groups->limit = BHT_COUNT(left);
    for (size_t i = 0; i < BHT_COUNT(pairs); i++) {
        for (int k = 0; k < 2; k++) {
            ranges[k] = (struct bhi_group_range){
                bhi_map_get(&bhi_vk(rig.backend)->buffers, pairs[i][k]), 0, 1024};
        }
        struct bhi_vk_group *group = bhi_vk_group_get(
            groups, bhi_map_get(&bhi_vk(rig.backend)->kernels.map, 1), ranges, &error);
        BHT_TRUE(group);
        bhi_vk_group_release(groups, group);
    }
    size_t count = 0;
    BHI_LIST_FOR(const struct bhi_vk_group, group, &groups->used, used) {
        BHT_LT(count, BHT_COUNT(left));
        BHT_EQ(group->ranges[0].buffer->id, left[count][0]);
        BHT_EQ(group->ranges[1].buffer->id, left[count++][1]);
    }
    BHT_EQ(count, BHT_COUNT(left));
}

/* -- what descriptor pools hold ---------------------------------------------------------------- */

static size_t count_pools(void) {
    size_t count = 0;
    BHI_LIST_EACH(node, &bhi_vk(rig.backend)->groups.pools) {
        count++;
    }
    return count;
}

/* Each dispatch binds another range, and so needs sets of its own: all at the same time. */
static void bind_ranges(uint32_t storage, uint32_t uniform, uint32_t count) {
    struct rig_binding bindings[64];
    uint32_t *sum = rig_buffer(1, (uint64_t)count * 256);
    ((uint32_t *)rig_buffer(2, 16))[0] = 3;
    rig_begin();
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < storage + uniform; k++) {
            bindings[k] =
                k < storage
                    ? (struct rig_binding){0, 1, BH_ACCESS_READ_WRITE, (uint64_t)i * 256, 256, 0, k}
                    : (struct rig_binding){1, 2, BH_ACCESS_READ, 0, 16, 0, k - storage};
        }
        rig_dispatch(1, 1, 1, 1, bindings, storage + uniform, NULL, 0);
    }
    rig_run_ok();
    for (uint32_t i = 0; i < count; i++) {
        BHT_EQ(sum[i * 64], 3);
    }
    BHT_EQ(bhi_vk(rig.backend)->groups.count, count);
}

/* Whatever a pool runs out of first, another one is made; and what is freed is used again. */
TEST(a_full_pool_is_followed_by_another) {
    static const struct {
        uint32_t storage, uniform, sets, count;
    } rows[] = {
        {1, 1, 8, 300},  /* sets */
        {24, 1, 8, 100}, /* storage buffers */
        {1, 12, 8, 100}, /* uniform buffers */
        {1, 1, 1, 40},   /* abort words, which share the only set */
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        rig_open_usual();
        bhi_vk(rig.backend)->device.limits.maxBoundDescriptorSets = rows[i].sets;
        const struct bhi_spec_constant constants[] = {{0, 4, rows[i].storage},
                                                      {1, 4, rows[i].uniform}};
        for (int round = 0; round < 3; round++) {
            rig_kernel_entry(1, CODE(descriptors), "main", constants, 2);
            bind_ranges(rows[i].storage, rows[i].uniform, rows[i].count);
            BHT_EQ(count_pools(), 2);
        }
    }
}
