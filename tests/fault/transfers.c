/* The host memory through which bh_buffer_write and bh_buffer_read copy (submit/transfer.h) on real
 * workers. It is kept from one transfer to the next, by the rules of the pool (B3, B5, B6). A
 * processor poses as a GPU (tests/hostile/faults.h). */
#include "../system/device_scene.h"
#include "plan.h"
#include "redirect.h"
#include "scene.h"
#include "supervisor/context/context.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/worker_proc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB   (1024ull * 1024)
#define PIECE (2 * MIB)
#define MOST  4u               /* pieces under way */
#define SIZE  (9 * PIECE + 12) /* the memory of a piece is used several times, the last is short */

struct scene {
    bh_context *context;
    bh_stream *a;
    bh_buffer *buffer; /* of SIZE bytes */
    uint32_t *words;   /* what it was filled with */
};

static struct scene open_with(uint64_t device_memory, const char *faults) {
    bh_context_options options = fx_options();
    options.device_memory = device_memory;
    struct scene s = {.context = fx_context_with(options, faults)};
    s.a = device_stream(s.context, "a", "red", 0);
    fx_ready(s.a);
    s.buffer = device_buffer(s.context, s.a, SIZE, BH_MEMORY_AUTO);
    s.words = bht_own(device_pattern(SIZE, 1));
    return s;
}

static struct scene open_scene(uint64_t device_memory) {
    return open_with(device_memory, "*:poses_as_gpu:*=fail");
}

static void there_and_back(const struct scene *s) {
    device_put(s->buffer, s->words, SIZE);
    device_expect(s->buffer, s->words, SIZE);
}

/* A download may take what the first upload has left. After the second one each has its own. */
static void warm_up(const struct scene *s) {
    there_and_back(s);
    there_and_back(s);
}

/* Messages that the worker of |stream| has been sent. */
static uint32_t messages(const bh_stream *stream) {
    bhi_context_lock(stream->context);
    const uint32_t sent = bhi_stream_worker(stream)->control_sent;
    bhi_context_unlock(stream->context);
    return sent;
}

/* After the first ones, transfers make no memory and send no message: nothing is mapped or imported
 * anew. Each direction has its own memory. */
TEST(it_is_kept) {
    struct scene s = open_scene(0);
    warm_up(&s);
    const bh_stats first = fx_stats(s.context);
    const uint32_t sent = messages(s.a);
    BHT_EQ(first.pool_blocks, 2 * MOST);
    for (int i = 0; i < 3; i++) {
        there_and_back(&s);
    }
    BHT_EQ(fx_stats(s.context).pool_misses, first.pool_misses);
    BHT_EQ(fx_stats(s.context).pool_blocks, first.pool_blocks);
    BHT_EQ(fx_stats(s.context).pool_zeroed_bytes, 0);
    BHT_EQ(messages(s.a), sent);
}

/* A small transfer takes little. */
TEST(small_ones_take_little) {
    struct scene s = open_scene(0);
    BHT_EQ(bh_buffer_write(s.buffer, 0, s.words, 100, FX_SECONDS, NULL), BH_OK);
    BHT_EQ(fx_stats(s.context).pool_blocks, 1);
    BHT_EQ(fx_stats(s.context).pool_bytes, 4096);
}

/* The worker dies between transfers: its memory is cleared before the next one gets it, and is not
 * made anew. */
TEST(its_worker_dies) {
    struct scene s = open_scene(0);
    warm_up(&s);
    const bh_stats first = fx_stats(s.context);
    fx_replace_worker(s.context, s.a);
    warm_up(&s);
    BHT_EQ(fx_stats(s.context).pool_misses, first.pool_misses);
    BHT_EQ(fx_stats(s.context).pool_zeroed_bytes, 2 * MOST * PIECE);
}

/* It dies in a piece of an upload, and of a download: the first, one in the middle, the last. The
 * next worker copies that piece, and the calls do not fail. */
TEST(its_worker_dies_in_a_piece) {
    static const unsigned pieces[] = {1, 5, 10};
    char faults[160];
    snprintf(faults, sizeof faults, "*:poses_as_gpu:*=fail,%s", bht_plan_open());
    struct scene s = open_with(0, faults);
    there_and_back(&s); /* the memory is made */
    for (size_t i = 0; i < BHT_COUNT(pieces); i++) {
        s.words[0] = (uint32_t)i;
        bht_plan_arm("submitted", "kill", pieces[i]);
        device_put(s.buffer, s.words, SIZE);
        BHT_TRUE(bht_plan_disarm());
        bht_plan_arm("before_record", "kill", pieces[i]);
        device_expect(s.buffer, s.words, SIZE);
        BHT_TRUE(bht_plan_disarm());
    }
}

/* The bytes of one tenant are in no buffer of another one, not even if it asks for old bytes. */
TEST(no_other_tenant_sees_it) {
    struct scene s = open_scene(0);
    warm_up(&s);
    bh_stream *b = device_stream(s.context, "b", "blue", 0);
    fx_ready(b);
    bh_buffer_options options = {.struct_size = sizeof options};
    options.stream = b;
    options.flags = BH_BUFFER_UNINITIALIZED;
    for (int dead = 0; dead < 2; dead++) {
        const uint64_t hits = fx_stats(s.context).pool_hits;
        bh_buffer *buffers[2 * MOST];
        for (unsigned i = 0; i < 2 * MOST; i++) {
            BHT_EQ(bh_buffer_create(s.context, PIECE, &options, &buffers[i], NULL), BH_OK);
            const uint32_t *words = fx_mapped(buffers[i]);
            for (uint64_t k = 0; k < PIECE / 4; k++) {
                BHT_EQ(words[k], 0);
            }
        }
        BHT_EQ(fx_stats(s.context).pool_hits - hits, dead ? 2 * MOST : 0);
        for (unsigned i = 0; i < 2 * MOST; i++) {
            bh_buffer_release(buffers[i]);
        }
        BHT_EQ(bh_context_trim(s.context, 0, NULL), BH_OK);
        warm_up(&s);
        fx_replace_worker(s.context, s.a);
    }
}

TEST(trim_gives_it_back) {
    struct scene s = open_scene(0);
    there_and_back(&s);
    BHT_EQ(bh_context_trim(s.context, 0, NULL), BH_OK);
    BHT_EQ(fx_stats(s.context).pool_blocks, 0);
    BHT_EQ(fx_stats(s.context).pool_bytes, 0);
    there_and_back(&s);
}

/* It counts against no limit of device memory. */
TEST(limits_do_not_count_it) {
    struct scene s = open_scene(2 * (SIZE + 4096));
    there_and_back(&s);
    bh_buffer *other = device_buffer(s.context, s.a, SIZE, BH_MEMORY_AUTO);
    device_put(other, s.words, SIZE);
    device_expect(other, s.words, SIZE);
}

struct mover {
    const struct scene *scene;
    uint32_t seed;
    pthread_t thread;
};

static void *move_some(void *argument) {
    const struct mover *mover = argument;
    const struct scene *s = mover->scene;
    bh_buffer *buffer = device_buffer(s->context, s->a, SIZE, BH_MEMORY_AUTO);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t *words = device_pattern(SIZE, mover->seed + i);
        device_put(buffer, words, SIZE);
        device_expect(buffer, words, SIZE);
        free(words);
    }
    bh_buffer_release(buffer);
    return NULL;
}

/* Several threads on one stream: each takes what is there, or makes its own. */
TEST(several_at_once) {
    enum { THREADS = 4 };
    struct scene s = open_scene(0);
    struct mover movers[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        movers[i] = (struct mover){.scene = &s, .seed = 1000 * i};
        BHT_EQ(pthread_create(&movers[i].thread, NULL, move_some, &movers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(movers[i].thread, NULL);
    }
    BHT_LE(fx_stats(s.context).pool_misses, 2 * MOST * THREADS);
}
