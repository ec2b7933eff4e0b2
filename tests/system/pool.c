/* The pool: who gets which memory, and what is in it. */
#include "pool_stage.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Leaves one block behind that |streams| have filled with ones, and returns where it was. */
static void *leave(struct scene *s, bh_stream *first, bh_stream *second) {
    bh_buffer *buffer = make(s->context, 64 * KIB, NULL, 0);
    void *pointer = fx_pointer(buffer);
    memset(pointer, 0x11, 64 * KIB);
    if (first) {
        fill(first, buffer, 0x11111111);
    }
    if (second) {
        fill(second, buffer, 0x11111111);
    }
    bh_buffer_release(buffer);
    BHT_EQ(fx_stats(s->context).pool_blocks, 1);
    return pointer;
}

/* Is that block what a buffer made for |stream| gets? In any case the buffer is zero. */
static bool gets(struct scene *s, bh_stream *stream, const void *pointer) {
    bh_buffer *buffer = make(s->context, 64 * KIB, stream, 0);
    expect_words(buffer, 0);
    const void *found = fx_mapped(buffer);
    bool same = found == pointer;
    /* Out of the way, if it is another one. */
    if (!same) {
        fill(stream ? stream : s->a, buffer, 5);
        fill(stream == s->b ? s->a : s->b, buffer, 5);
    }
    bh_buffer_release(buffer);
    return same;
}

/* -- who gets what ------------------------------------------------------------------------------
 */

/* One that no worker has is everybody's; one that a worker has is for its stream; one that two
 * have is nobody's. */
TEST(memory_is_for_whose_worker_has_had_it) {
    static const struct {
        bool by_a, by_b, for_none, for_a, for_b;
    } rows[] = {
        {false, false, true, true, true},
        {true, false, false, true, false},
        {true, true, false, false, false},
    };
    struct scene s = set_up();
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        const char *const row = rows[i].by_b ? "two" : rows[i].by_a ? "one" : "none";
        void *block = leave(&s, rows[i].by_a ? s.a : NULL, rows[i].by_b ? s.b : NULL);
        if (gets(&s, NULL, block) != rows[i].for_none || gets(&s, s.b, block) != rows[i].for_b ||
            gets(&s, s.a, block) != rows[i].for_a) {
            BHT_FAIL("memory that %s of the workers had went to the wrong stream", row);
        }
        BHT_EQ(bh_context_trim(s.context, 0, NULL), BH_OK);
    }
    expect_well(&s);
}

TEST(a_death_gives_it_back) {
    struct scene s = set_up();
    void *block = leave(&s, s.a, s.b);
    fx_replace_worker(s.context, s.a);
    BHT_TRUE(!gets(&s, NULL, block));
    BHT_TRUE(!gets(&s, s.a, block)); /* its new worker never had it */
    BHT_TRUE(gets(&s, s.b, block));
    fx_replace_worker(s.context, s.b);
    BHT_TRUE(gets(&s, NULL, block));
    expect_well(&s);
}

/* Made for one stream, bound to another: both have it then. */
TEST(bound_to_another_stream) {
    struct scene s = set_up();
    void *block = leave(&s, s.a, NULL);
    bh_buffer *buffer = make(s.context, 64 * KIB, s.a, 0);
    BHT_TRUE(fx_pointer(buffer) == block);
    fill(s.b, buffer, 7);
    expect_words(buffer, 7);
    fill(s.a, buffer, 8);
    expect_words(buffer, 8);
    bh_buffer_release(buffer);
    BHT_TRUE(!gets(&s, s.a, block));
    BHT_TRUE(!gets(&s, s.b, block));
    expect_well(&s);
}

/* -- what is in it ------------------------------------------------------------------------------
 */

TEST(uninitialized_only_where_it_was_its_own) {
    struct scene s = set_up();
    bh_buffer *buffer = make(s.context, 64 * KIB, s.a, 0);
    void *block = fx_pointer(buffer);
    fill(s.a, buffer, 0x11111111);
    bh_buffer_release(buffer);
    buffer = make(s.context, 64 * KIB, s.a, BH_BUFFER_UNINITIALIZED);
    BHT_TRUE(fx_pointer(buffer) == block);
    expect_words(buffer, 0x11111111);
    BHT_EQ(fx_stats(s.context).pool_zeroed_bytes, 0);
    bh_buffer_release(buffer);
    fx_replace_worker(s.context, s.a);
    buffer =
        make(s.context, 64 * KIB, s.a, BH_BUFFER_UNINITIALIZED); /* another worker's leavings */
    BHT_TRUE(fx_pointer(buffer) == block);
    expect_words(buffer, 0);
    BHT_EQ(fx_stats(s.context).pool_zeroed_bytes, 64 * KIB);
    memset(block, 0x22, 64 * KIB);
    bh_buffer_release(buffer);
    buffer = make(s.context, 64 * KIB, NULL, BH_BUFFER_UNINITIALIZED); /* the host's own */
    BHT_TRUE(fx_pointer(buffer) == block);
    expect_words(buffer, 0);
    expect_well(&s);
}

/* A kernel that nobody trusts would see them. What was in a buffer that was not made for its stream
 * may be of anybody, and so may what another stream has written, also when that one's worker is
 * gone. */
TEST(others_old_bytes_are_never_seen) {
    struct scene s = set_up();
    void *block = leave(&s, s.a, NULL);
    bh_buffer *buffer = make(s.context, 64 * KIB, s.a, BH_BUFFER_UNINITIALIZED);
    BHT_TRUE(fx_pointer(buffer) == block);
    expect_words(buffer, 0);
    fill(s.a, buffer, 0x11111111);
    fill(s.b, buffer, 0x22222222);
    bh_buffer_release(buffer);
    fx_replace_worker(s.context, s.b);
    buffer = make(s.context, 64 * KIB, s.a, BH_BUFFER_UNINITIALIZED);
    BHT_TRUE(fx_pointer(buffer) == block);
    expect_words(buffer, 0);
    expect_well(&s);
}

/* A worker maps whole blocks: what is beyond the end of a buffer is zero, too. */
TEST(zero_to_the_end_of_the_block) {
    struct scene s = set_up();
    bh_buffer *large = make(s.context, 80 * KIB, NULL, 0); /* a class of its own */
    unsigned char *bytes = (unsigned char *)(void *)fx_pointer(large);
    memset(bytes, 0x33, 80 * KIB);
    bh_buffer_release(large);
    bh_buffer *small = make(s.context, 65 * KIB, NULL, 0);
    BHT_TRUE((unsigned char *)(void *)fx_pointer(small) == bytes);
    for (uint64_t i = 0; i < 80 * KIB; i++) {
        BHT_EQ(bytes[i], 0);
    }
    expect_well(&s);
}

/* The worker keeps a block while nobody uses it: nothing is sent when it is bound again, and what
 * is computed in it is right. One that failed is told to it anew. */
TEST(a_hot_buffer_again_and_again) {
    struct scene s = set_up();
    void *block = NULL;
    for (uint32_t i = 0; i < 200; i++) {
        /* Sizes of one class, flags, and a submission that fails now and then. */
        uint64_t size = 64 * KIB - 256ull * (i % 7);
        bh_buffer *buffer = make(s.context, size, s.a, i % 3 ? BH_BUFFER_UNINITIALIZED : 0);
        if (block) {
            BHT_TRUE((void *)fx_pointer(buffer) == block);
        }
        block = fx_pointer(buffer);
        if (i % 3 == 0) {
            expect_words(buffer, 0);
        }
        if (i % 16 == 15) {
            bh_kernel *square = fx_kernel(s.context, "square");
            fx_expect(fx_run(s.a, square, buffer), BH_BINDING_MISMATCH); /* binding 1 is missing */
            bh_kernel_release(square);
        } else {
            fill(s.a, buffer, i);
            expect_words(buffer, i);
        }
        bh_buffer_release(buffer);
    }
    bh_stats stats = fx_stats(s.context);
    BHT_EQ(stats.pool_misses, 1);
    BHT_EQ(stats.pool_hits, 199);
    expect_well(&s);
}

/* It is not what the next buffer has to suffer from. */
TEST(a_block_that_could_not_be_imported) {
    bh_context *context = fx_context("1:attach:1=fail");
    bh_stream *stream = fx_stream(context, "a", FX_SECONDS);
    fx_ready(stream);
    bh_buffer *buffer = make(context, 64 * KIB, stream, 0);
    void *block = fx_pointer(buffer);
    fx_expect(fx_fill(stream, buffer, 0), BH_OUT_OF_HOST_MEMORY);
    bh_buffer_release(buffer);
    buffer = make(context, 64 * KIB, stream, 0);
    BHT_TRUE((void *)fx_pointer(buffer) == block);
    fill(stream, buffer, 3);
    expect_words(buffer, 3);
}

/* The descriptor of the one buffer that there is. */
static int descriptor_of_the_buffer(void) {
    char path[64], target[256];
    for (int fd = 3; fd < 256; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length <= 0) {
            continue;
        }
        target[length] = 0;
        if (strstr(target, "memfd:bulkhead-buffer")) {
            return fd;
        }
    }
    BHT_FAIL("no descriptor of a buffer");
}

/* As a worker could punch them whose filter has failed: memory that is not there any more would be
 * a SIGBUS where there is none left. */
TEST(a_block_with_a_hole_is_not_used_again) {
    bh_context *context = fx_context(NULL);
    bh_buffer *buffer = make(context, 64 * KIB, NULL, 0);
    memset(fx_pointer(buffer), 1, 64 * KIB);
    int fd = descriptor_of_the_buffer();
    BHT_EQ(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 4096), 0);
    bh_buffer_release(buffer);
    BHT_EQ(fx_stats(context).pool_blocks, 1);
    buffer = make(context, 64 * KIB, NULL, 0);
    expect_words(buffer, 0);
    bh_stats stats = fx_stats(context);
    BHT_EQ(stats.pool_blocks, 0);
    BHT_EQ(stats.pool_hits, 0);
    BHT_EQ(stats.pool_misses, 2);
    BHT_EQ(stats.pool_evictions, 1);
    BHT_EQ(stats.pool_zeroed_bytes, 0);
}

/* A worker that could not map a buffer once is told of it anew, also while the buffer is in use. */
TEST(a_failed_import_passes) {
    bh_context *context = fx_context("1:attach:1=fail");
    bh_stream *stream = fx_stream(context, "a", FX_SECONDS);
    fx_ready(stream);
    bh_buffer *buffer = make(context, 64 * KIB, stream, 0);
    fx_expect(fx_fill(stream, buffer, 0), BH_OUT_OF_HOST_MEMORY);
    fill(stream, buffer, 3);
    expect_words(buffer, 3);
}

/* -- arguments, ends ----------------------------------------------------------------------------
 */

TEST(bad_arguments) {
    bh_context *context = fx_context(NULL), *other = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "a", FX_SECONDS), *stranger = fx_stream(other, "b", 1);
    bh_buffer *buffer = NULL;
    bh_detail detail;
    bh_stats stats = {.struct_size = sizeof stats};
#define EXPECT(code, call, words)                                                                  \
    do {                                                                                           \
        BHT_EQ(call, code);                                                                        \
        BHT_EQ(detail.status, code);                                                               \
        BHT_STR_HAS(detail.message, words);                                                        \
    } while (0)
    bh_buffer_options options = {.struct_size = sizeof options - 1};
    EXPECT(BH_INVALID_ARGUMENT, bh_buffer_create(context, 64, &options, &buffer, &detail),
           "struct_size");
    options.struct_size++;
    options.flags = 2;
    fx_no_buffer(context, 64, options, BH_INVALID_ARGUMENT, "flags 0x2");
    options.flags = 0x80000001;
    fx_no_buffer(context, 64, options, BH_INVALID_ARGUMENT, "flags 0x80000001");
    options.flags = 0;
    options.stream = stranger;
    fx_no_buffer(context, 64, options, BH_INVALID_ARGUMENT, "another context");
    bh_stream_release(stranger);
    fx_no_buffer(context, 64, options, BH_INVALID_ARGUMENT, "released");
    options.stream = stream;
    EXPECT(BH_INVALID_ARGUMENT, bh_buffer_create(context, 64, &options, NULL, &detail),
           "out_buffer");
    EXPECT(BH_INVALID_ARGUMENT, bh_buffer_create(NULL, 64, &options, &buffer, &detail),
           "context is NULL");
    const bh_buffer_options none = {0};
    fx_no_buffer(context, (1ull << 40) + 1, none, BH_TOO_LARGE, "bh_buffer_create: ");
    fx_no_buffer(context, 1ull << 40, none, BH_NO_MEMORY, "bh_buffer_create: ");
    EXPECT(BH_INVALID_ARGUMENT, bh_context_trim(NULL, 0, &detail), "context is NULL");
    EXPECT(BH_INVALID_ARGUMENT, bh_context_stats(NULL, &stats, NULL, 0, NULL, &detail),
           "context is NULL");
    EXPECT(BH_INVALID_ARGUMENT, bh_context_stats(context, NULL, NULL, 0, NULL, &detail),
           "out_stats");
    BHT_EQ(bh_buffer_create(context, 64, &options, &buffer, NULL), BH_OK);
    bh_buffer_release(buffer);
    bh_stream_release(stream);
    BHT_EQ(bh_buffer_create(context, 64, NULL, &buffer, NULL), BH_OK);
    bh_context_destroy(context);
    bh_context_destroy(other);
    bh_buffer *late;
    EXPECT(BH_CLOSED, bh_buffer_create(context, 64, NULL, &late, &detail), "destroyed");
    EXPECT(BH_CLOSED, bh_context_trim(context, 0, &detail), "destroyed");
    EXPECT(BH_CLOSED, bh_context_stats(context, &stats, NULL, 0, NULL, &detail), "destroyed");
    expect_words(buffer, 0); /* it outlives the context, and takes its memory with it */
}

/* -- many threads -------------------------------------------------------------------------------
 */

struct churn {
    struct scene *scene;
    unsigned seed;
};

/* Make, fill with a value of one's own, look, drop, while others do the same, and somebody trims.
 */
static void *churn(void *argument) {
    struct churn *c = argument;
    for (uint32_t i = 0; i < (BHT_TSAN || BHT_ASAN ? 60 : 200); i++) {
        bh_stream *stream = i % 2 ? c->scene->a : c->scene->b;
        uint64_t size = 4096ull * (1 + (i * 7 + c->seed) % 9);
        bh_buffer *buffer = make(c->scene->context, size, i % 5 ? stream : NULL, 0);
        expect_words(buffer, 0);
        uint32_t value = c->seed * 1000 + i;
        fill(stream, buffer, value);
        expect_words(buffer, value);
        if (i % 32 == 31) {
            BHT_EQ(bh_context_trim(c->scene->context, 16384, NULL), BH_OK);
        }
        bh_buffer_release(buffer);
    }
    return NULL;
}

TEST_WITH(threads, 60, BHT_ALLOW_MAPPINGS) {
    struct scene s = set_up();
    struct churn churns[4];
    for (unsigned i = 0; i < 4; i++) {
        churns[i] = (struct churn){.scene = &s, .seed = i + 1};
        bht_start(churn, &churns[i]);
    }
    bht_join();
    expect_well(&s);
}

/* -- rounds with deaths -------------------------------------------------------------------------
 */

struct footprint {
    size_t descriptors, mappings;
    uint64_t resident;
};

static struct footprint measure(bh_context *context) {
    BHT_EQ(bh_context_trim(context, 0, NULL), BH_OK);
    struct bht_counts counts = bht_count_self();
    return (struct footprint){counts.descriptors, counts.mappings, bht_resident_bytes(getpid())};
}

/* Create, bind, kill, release. Nightly 10,000 times: descriptors, mappings and memory stay. */
TEST_WITH(create_bind_kill_release, 60, BHT_ALLOW_MAPPINGS) {
    const uint32_t rounds = bht_nightly() ? 10000 : BHT_TSAN || BHT_ASAN ? 12 : 40;
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "a", BH_FOREVER);
    bh_kernel *gate = fx_kernel(context, "gate");
    struct footprint before = {0};
    for (uint32_t i = 0; i < rounds; i++) {
        if (i == rounds / 4) {
            fx_ready(stream);
            before = measure(context);
        }
        pid_t pid = fx_ready(stream);
        bh_buffer *buffer = make(context, 64 * KIB * (1 + i % 3), stream, 0);
        bh_buffer *behind = make(context, 64 * KIB, NULL, 0);
        expect_words(buffer, 0);
        expect_words(behind, 0);
        bh_event *event = fx_gate(stream, gate, buffer);
        fx_await_gate(buffer);
        bh_event *next = fx_fill(stream, i % 2 ? behind : buffer, i);
        bool early = i % 3 == 0;
        if (early) {
            bh_buffer_release(buffer);
            bh_buffer_release(behind);
        }
        fx_kill(pid, SIGKILL);
        fx_expect(event, BH_WORKER_SIGNAL);
        fx_expect(next, BH_OK); /* it had not started: the next worker does it */
        bh_event_release(event);
        bh_event_release(next);
        if (!early) {
            expect_words(i % 2 ? behind : buffer, i);
            bh_buffer_release(buffer);
            bh_buffer_release(behind);
        }
    }
    fx_ready(stream);
    struct footprint after;
    /* ZeroMQ closes its sockets, and holders end, a little later. */
    WAIT_UNTIL((after = measure(context), after.descriptors <= before.descriptors + 4), 20000);
    BHT_LE(after.mappings, before.mappings + 4);
    BHT_LT(after.resident, before.resident + (BHT_ASAN || BHT_TSAN ? 64 * MIB : 3 * MIB));
}
