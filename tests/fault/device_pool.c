/* The pool of device memory (supervisor/buffer/pool.h) on real workers, which die, cannot
 * clear, and have no memory left (B2, B3, D3, D5, D6). A processor poses as a GPU
 * (tests/hostile/faults.h). Who gets what is in tests/puppet/device_pool_test.c, too. */
#include "../system/device_scene.h"
#include "redirect.h"
#include "scene.h"
#include "supervisor/buffer/pool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024ull

struct scene {
    bh_context *context;
    bh_stream *a;
};

/* |faults| besides; |limit|: of the context's device memory. */
static struct scene open_scene(const char *faults, uint64_t limit) {
    char all[256];
    snprintf(all, sizeof all, "*:poses_as_gpu:*=fail%s%s", faults ? "," : "", faults ? faults : "");
    bh_context_options options = fx_options();
    options.device_memory = limit;
    struct scene s = {.context = fx_context_with(options, all)};
    s.a = device_stream(s.context, "a", NULL, 0);
    fx_ready(s.a);
    return s;
}

/* A buffer full of other things is gone. */
static void leave(struct scene *s, bh_stream *stream, uint64_t size) {
    bh_buffer *buffer = device_buffer(s->context, stream, size, BH_MEMORY_AUTO);
    uint32_t *words = device_pattern((size + 3) / 4 * 4, 0x11111111);
    device_put(buffer, words, size);
    device_expect(buffer, words, size);
    bh_buffer_release(buffer);
    free(words);
}

/* Did it get what was left behind? In any case it is zero. */
static bool next_is_zero(struct scene *s, bh_stream *stream, uint64_t size) {
    const uint64_t hits = fx_stats(s->context).device_pool_hits;
    bh_buffer *buffer = device_buffer(s->context, stream, size, BH_MEMORY_AUTO);
    const bool got = fx_stats(s->context).device_pool_hits > hits;
    void *zeros = calloc(1, size);
    BHT_TRUE(zeros);
    device_expect(buffer, zeros, size);
    bh_buffer_release(buffer);
    free(zeros);
    return got;
}

/* -- D3 --------------------------------------------------------------------------------------- */

/* To the last byte, by the worker that has had it and by another one. */
TEST(d3_it_is_cleared) {
    static const uint64_t sizes[] = {1, 3, 4, 5, 4096, 64 * KIB + 1, 2048 * KIB + 4};
    struct scene s = open_scene(NULL, 0);
    for (size_t i = 0; i < BHT_COUNT(sizes); i++) {
        leave(&s, s.a, sizes[i]);
        BHT_TRUE(next_is_zero(&s, s.a, sizes[i]));
    }
    BHT_EQ(fx_stats(s.context).device_pool_blocks, BHT_COUNT(sizes));
    leave(&s, s.a, sizes[6]);
    fx_replace_worker(s.context, s.a);
    BHT_TRUE(next_is_zero(&s, s.a, sizes[6]));
}

/* Who has to clear it dies before it, or when it has cleared it and has not said so. The submission
 * that needed it had not begun: it runs on the next worker (E13). */
TEST(d3_the_clearer_dies) {
    static const char *const steps[] = {"1:clear:1=kill", "1:clear:1=segv", "1:cleared:1=kill",
                                        "1:clear:1=kill,2:clear:1=kill"};
    for (size_t i = 0; i < BHT_COUNT(steps); i++) {
        struct scene s = open_scene(steps[i], 0);
        leave(&s, s.a, 256);
        BHT_TRUE(next_is_zero(&s, s.a, 256));
        BHT_EQ(bh_context_destroy(s.context), BH_OK);
    }
}

/* It has cleared it, and dies while it runs what needed it: a verdict that says so, and zeros for
 * the next. */
TEST(d3_it_dies_after_it_has_cleared_it) {
    struct scene s = open_scene("1:submitted:3=kill", 0);
    leave(&s, s.a, 256); /* two submissions */
    bh_buffer *buffer = device_buffer(s.context, s.a, 256, BH_MEMORY_AUTO),
              *host = fx_words(s.context, 64, 9);
    BHT_EQ(fx_stats(s.context).device_pool_hits, 1);
    fx_expect(device_copy(s.a, buffer, host), BH_WORKER_SIGNAL);
    const uint32_t zeros[64] = {0};
    device_expect(buffer, zeros, sizeof zeros);
}

/* Stopped before it clears it, and another stream waits for it: that one goes on when the first is
 * dead. */
TEST(d3_another_stream_waits) {
    struct scene s = open_scene("1:clear:1=stop", 0);
    bh_stream *b = device_stream(s.context, "b", NULL, 0);
    fx_ready(b);
    leave(&s, s.a, 256);
    bh_buffer *buffer = device_buffer(s.context, s.a, 256, BH_MEMORY_AUTO);
    bh_buffer *first = fx_words(s.context, 64, 1), *second = fx_words(s.context, 64, 1);
    bh_event *one = device_copy(s.a, buffer, first);
    const pid_t stopped = fx_await_stopped();
    bh_event *two = device_copy(b, buffer, second);
    BHT_EQ(bh_event_query(two), BH_EVENT_PENDING);
    fx_kill(stopped, SIGKILL);
    device_expect_ready(two);
    device_expect_ready(one);
    BHT_EQ(fx_pointer(first)[63], 0);
    BHT_EQ(fx_pointer(second)[63], 0);
}

/* The driver cannot clear or import it any more: memory is made instead, and nobody notices. */
TEST(d3_it_cannot_be_cleared) {
    /* Its worker does not outlive the first on CUDA, where memory may be left mapped for writing. */
    struct scene s = open_scene(fx_on_cuda() ? "1:clear_fails:1=fail,3:import:1=fail"
                                             : "1:clear_fails:1=fail,2:import:1=fail",
                                0);
    leave(&s, s.a, 256);
    BHT_TRUE(next_is_zero(&s, s.a, 256));
    leave(&s, s.a, 256);
    fx_replace_worker(s.context, s.a);
    BHT_TRUE(next_is_zero(&s, s.a, 256));
    fx_expect_healthy(s.context, s.a);
}

/* -- B2, B3 ----------------------------------------------------------------------------------- */

/* In flight it is not in the pool, whatever the host drops. */
TEST(b2_what_is_in_flight_is_not_kept) {
    struct scene s = open_scene(NULL, 0);
    leave(&s, s.a, 256);
    const struct fx_held held = fx_hold(s.context, s.a);
    bh_buffer *buffer = device_buffer(s.context, s.a, 256, BH_MEMORY_AUTO),
              *host = fx_words(s.context, 64, 9);
    bh_event *write = device_copy(s.a, host, buffer), *read = device_copy(s.a, buffer, host);
    bh_buffer_release(buffer);
    BHT_EQ(fx_stats(s.context).device_pool_blocks, 0);
    BHT_EQ(bh_context_trim(s.context, 0, NULL), BH_OK);
    fx_open(held.word);
    fx_expect(held.event, BH_OK);
    device_expect_ready(write);
    device_expect_ready(read);
    BHT_EQ(fx_pointer(host)[63], 9);
    BHT_EQ(fx_stats(s.context).device_pool_blocks, 1);
}

TEST(b3_other_tenants_and_streams_get_none) {
    struct scene s = open_scene(NULL, 0);
    bh_stream *b = device_stream(s.context, "b", "somebody else", 0),
              *a2 = device_stream(s.context, "a2", NULL, 0);
    fx_ready(b);
    fx_ready(a2);
    leave(&s, s.a, 256);
    BHT_TRUE(!next_is_zero(&s, b, 256));
    BHT_TRUE(!next_is_zero(&s, a2, 256));
    BHT_EQ(bh_context_trim(s.context, 0, NULL), BH_OK);
    leave(&s, s.a, 256);
    fx_replace_worker(s.context, s.a);
    BHT_TRUE(!next_is_zero(&s, b, 256));
    BHT_TRUE(next_is_zero(&s, a2, 256));
}

/* -- D5, D6 ----------------------------------------------------------------------------------- */

TEST(d5_a_lost_device_keeps_nothing) {
    struct scene s = open_scene("1:lie_device:4=fail", 0);
    bh_buffer *host = fx_words(s.context, 64, 9);
    leave(&s, s.a, 64); /* two submissions */
    BHT_EQ(fx_stats(s.context).device_pool_blocks, 1);
    bh_buffer *buffer = device_buffer(s.context, s.a, 256, BH_MEMORY_AUTO);
    device_expect_ready(device_copy(s.a, host, buffer));
    fx_expect(device_copy(s.a, host, buffer), BH_DEVICE_LOST);
    BHT_EQ(fx_stats(s.context).device_pool_blocks, 0);
    bh_buffer_release(buffer);
    bh_buffer_release(host);
    BHT_TRUE(!next_is_zero(&s, s.a, 64));
}

/* What is kept counts against the limit, and makes room. */
TEST(d6_within_the_limit) {
    struct scene s = open_scene(NULL, 256 * KIB);
    leave(&s, s.a, 128 * KIB);
    leave(&s, s.a, 64 * KIB);
    device_buffer(s.context, s.a, 192 * KIB, BH_MEMORY_AUTO);
    BHT_EQ(fx_stats(s.context).device_pool_bytes, 64 * KIB);
    device_buffer(s.context, s.a, 64 * KIB, BH_MEMORY_AUTO);
    BHT_EQ(fx_stats(s.context).device_pool_hits, 1);
    BHT_EQ(fx_stats(s.context).device_pool_bytes, 0);
    bh_buffer_options options = {.struct_size = sizeof options};
    options.stream = s.a;
    options.memory = BH_MEMORY_DEVICE;
    bh_buffer *none = NULL;
    BHT_EQ(bh_buffer_create(s.context, 4096, &options, &none, NULL), BH_OUT_OF_DEVICE_MEMORY);
}

/* The driver has none left: what is kept is given up, by the workers that have it, and it is tried
 * for a while. Only then is that a verdict. */
TEST(d6_on_a_full_device) {
    static const struct {
        const char *faults;
        bh_status status;
        bool keeps;
    } rows[] = {
        {"1:make_full:2=fail", BH_OK, true},
        {"1:make_full:2=fail,1:make_full:3=fail,1:make_full:4=fail", BH_OK, true},
        {"1:make_full:1=fail", BH_OK, false},
        {"1:make_full:1=fail,1:make_full:2=fail", BH_OUT_OF_DEVICE_MEMORY, false},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        struct scene s = open_scene(rows[i].faults, 0);
        if (rows[i].keeps) {
            leave(&s, s.a, 64);
        }
        bh_buffer *buffer = device_buffer(s.context, s.a, 256, BH_MEMORY_AUTO),
                  *host = fx_words(s.context, 64, 9);
        fx_expect(device_copy(s.a, host, buffer), rows[i].status);
        BHT_EQ(fx_stats(s.context).device_pool_blocks, 0);
        device_expect_ready(device_copy(s.a, host, buffer));
        device_expect(buffer, fx_pointer(host), 256);
        BHT_EQ(bh_context_destroy(s.context), BH_OK);
    }
}

/* It dies while it waits for the others: the memory is made by the next. */
TEST(d6_the_maker_dies_on_a_full_device) {
    struct scene s = open_scene("1:make_full:2=fail,1:make:3=kill", 0);
    leave(&s, s.a, 64);
    BHT_TRUE(!next_is_zero(&s, s.a, 256));
    fx_expect_healthy(s.context, s.a);
}

/* -- descriptors ------------------------------------------------------------------------------ */

TEST(each_block_has_one_descriptor) {
    enum { MANY = 20 };
    struct scene s = open_scene(NULL, 0);
    leave(&s, s.a, 64);
    BHT_EQ(bh_context_trim(s.context, 0, NULL), BH_OK);
    const size_t before = bht_count_self().descriptors;
    for (uint64_t i = 1; i <= MANY; i++) {
        leave(&s, s.a, 64 * i);
    }
    BHT_EQ(fx_stats(s.context).device_pool_blocks, MANY);
    BHT_EQ(bht_count_self().descriptors,
           before + MANY + fx_stats(s.context).pool_blocks); /* and the copies' host memory */
    for (uint64_t i = 1; i <= MANY; i++) {
        BHT_TRUE(next_is_zero(&s, s.a, 64 * i));
    }
    BHT_EQ(bht_count_self().descriptors,
           before + MANY + fx_stats(s.context).pool_blocks); /* and the copies' host memory */
    BHT_EQ(bh_context_trim(s.context, 0, NULL), BH_OK);
    BHT_EQ(bht_count_self().descriptors, before);
    leave(&s, s.a, 64); /* the harness counts at the end */
}

/* Each call that this thread makes for a buffer fails once. Its content is never another's. */
TEST(each_call_fails) {
    struct scene s = open_scene(NULL, 0);
    unsigned fired = 0;
    for (int kind = 0; kind < BHT_KINDS; kind++) {
        bool met = true;
        for (unsigned nth = 1; met; nth++) {
            leave(&s, s.a, 256);
            bh_buffer_options options = {.struct_size = sizeof options};
            options.stream = s.a;
            options.memory = BH_MEMORY_DEVICE;
            bh_buffer *host = fx_words(s.context, 64, 9), *buffer = NULL;
            bh_event *event = NULL;
            bh_detail detail = {0};
            bht_arm((struct bht_fault){.kind = kind, .nth = nth, .side = BHT_THIS_THREAD});
            bh_status status = bh_buffer_create(s.context, 256, &options, &buffer, &detail);
            if (status == BH_OK) {
                const bh_command command = {.type = BH_COMMAND_COPY,
                                            .copy = {.src = buffer, .dst = host, .size = 256}};
                const bh_submit_info info = {
                    .struct_size = sizeof info, .commands = &command, .command_count = 1};
                status = bh_submit(s.a, &info, &event, &detail);
            }
            met = bht_disarm();
            fired += met;
            bht_check_detail(status, &detail, bht_where());
            if (status == BH_OK && bht_end(event, bht_where()) == BH_OK) {
                BHT_EQ(fx_pointer(host)[0], 0);
                BHT_EQ(fx_pointer(host)[63], 0);
            }
            bh_buffer_release(buffer);
            bh_buffer_release(host);
        }
    }
    BHT_GE(fired, 8);
}
