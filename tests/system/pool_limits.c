/* The pool: how much is kept, and how much there is to be had. */
#include "pool_stage.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- how much is kept ---------------------------------------------------------------------------
 */

TEST(the_oldest_go_first) {
    bh_context_options options = fx_options();
    options.pool_limit = 1 * MIB;
    bh_context *context = fx_context_with(options, NULL);
    bh_buffer *buffers[5];
    void *pointers[5];
    for (int i = 0; i < 5; i++) {
        buffers[i] = make(context, 256 * KIB, NULL, 0);
        pointers[i] = fx_pointer(buffers[i]);
    }
    for (int i = 0; i < 5; i++) {
        bh_buffer_release(buffers[i]); /* the fifth is too many */
    }
    bh_stats stats = fx_stats(context);
    BHT_EQ(stats.pool_bytes, 1 * MIB);
    BHT_EQ(stats.pool_blocks, 4);
    BHT_EQ(stats.pool_evictions, 1);
    BHT_EQ(stats.pool_misses, 5);
    for (int i = 4; i > 0; i--) { /* the newest first */
        buffers[i] = make(context, 250 * KIB, NULL, 0);
        BHT_EQ(fx_stats(context).pool_hits, 5 - i);
        BHT_TRUE((void *)fx_pointer(buffers[i]) == pointers[i]);
    }
    for (int i = 1; i < 5; i++) {
        bh_buffer_release(buffers[i]);
    }
    BHT_EQ(bh_context_trim(context, 600 * KIB, NULL), BH_OK);
    BHT_EQ(fx_stats(context).pool_bytes, 512 * KIB);
    BHT_EQ(bh_context_trim(context, BH_WHOLE_SIZE, NULL), BH_OK);
    BHT_EQ(fx_stats(context).pool_bytes, 512 * KIB);
    BHT_EQ(bh_context_trim(context, 0, NULL), BH_OK);
    BHT_EQ(fx_stats(context).pool_blocks, 0);
    BHT_EQ(fx_stats(context).pool_evictions, 5);
    /* What is larger than all that may be kept is of its exact size, and not kept. */
    bh_buffer *large = make(context, 1 * MIB + 1, NULL, 0);
    bh_buffer_release(large);
    BHT_EQ(fx_stats(context).pool_blocks, 0);
    BHT_EQ(fx_stats(context).pool_misses, 5);
}

/* What two workers have had is of use to nobody: it does not push out what is. */
TEST(what_nobody_can_use_goes_first) {
    bh_context_options options = fx_options();
    options.pool_limit = 256 * KIB;
    struct scene s = {.context = fx_context_with(options, NULL)};
    s.a = fx_stream(s.context, "a", FX_SECONDS);
    s.b = fx_stream(s.context, "b", FX_SECONDS);
    bh_buffer *own[2];
    for (int i = 0; i < 2; i++) {
        own[i] = make(s.context, 64 * KIB, s.a, 0);
        fill(s.a, own[i], 1);
    }
    bh_buffer *between[3]; /* a producer's and its consumer's */
    for (int i = 0; i < 3; i++) {
        between[i] = make(s.context, 64 * KIB, s.a, 0);
        fill(s.a, between[i], 1);
        fill(s.b, between[i], 2);
    }
    bh_buffer_release(own[0]);
    bh_buffer_release(own[1]);
    for (int i = 0; i < 3; i++) {
        bh_buffer_release(between[i]);
    }
    BHT_EQ(fx_stats(s.context).pool_blocks, 4);
    BHT_EQ(fx_stats(s.context).pool_evictions, 1);
    for (int i = 0; i < 2; i++) {
        own[i] = make(s.context, 64 * KIB, s.a, 0);
    }
    BHT_EQ(fx_stats(s.context).pool_hits, 2);
    expect_well(&s);
}

/* A loop that names no stream cannot have its memory back while the worker lives; at least it does
 * not fill the pool with it. */
TEST(a_loop_without_a_stream) {
    struct scene s = set_up();
    for (uint32_t i = 0; i < 20; i++) {
        bh_buffer *buffers[2];
        for (int j = 0; j < 2; j++) {
            buffers[j] = make(s.context, 64 * KIB, NULL, 0);
            fill(s.a, buffers[j], i);
        }
        for (int j = 0; j < 2; j++) {
            bh_buffer_release(buffers[j]);
        }
        BHT_LE(fx_stats(s.context).pool_blocks, 3);
    }
    BHT_EQ(fx_stats(s.context).pool_hits, 0);
    make(s.context, 64 * KIB, s.a, 0); /* what is left is of use to who names it */
    BHT_EQ(fx_stats(s.context).pool_hits, 1);
    expect_well(&s);
}

TEST(a_limit_of_nothing) {
    bh_context_options options = fx_options();
    options.pool_limit = BH_OFF;
    bh_context *context = fx_context_with(options, NULL);
    bh_stream *stream = fx_stream(context, "a", FX_SECONDS);
    for (uint32_t i = 0; i < 3; i++) {
        bh_buffer *buffer = make(context, 10000, stream, BH_BUFFER_UNINITIALIZED);
        expect_words(buffer, 0);
        fill(stream, buffer, i);
        bh_buffer_release(buffer);
    }
    const bh_stats stats = fx_stats(context);
    BHT_EQ(stats.pool_blocks + stats.pool_bytes + stats.pool_hits + stats.pool_misses +
               stats.pool_evictions + stats.pool_zeroed_bytes,
           0);
}

/* Each block has a descriptor: they are bounded, too. */
TEST(descriptors_are_bounded) {
    const struct rlimit files = {1024, 1024};
    BHT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
    bh_context *context = fx_context(NULL);
    static bh_buffer *buffers[700];
    size_t before = bht_count_self().descriptors;
    for (size_t i = 0; i < BHT_COUNT(buffers); i++) {
        buffers[i] = make(context, 4096, NULL, 0);
    }
    for (size_t i = 0; i < BHT_COUNT(buffers); i++) {
        bh_buffer_release(buffers[i]);
    }
    uint64_t blocks = fx_stats(context).pool_blocks;
    BHT_EQ(blocks, 1024 / 8);
    BHT_EQ(bht_count_self().descriptors, before + blocks);
    BHT_EQ(bh_context_trim(context, 0, NULL), BH_OK);
    BHT_EQ(bht_count_self().descriptors, before);
}

TEST(sizes) {
    struct scene s = set_up();
    static const uint64_t edges[] = {
        0,       1,     4095,  4096, 4097,    8192,        16384,
        16385,   20480, 20481, MIB,  MIB + 1, MIB * 5 / 4, MIB * 5 / 4 + 1,
        33 * MIB};
    for (size_t i = 0; i < BHT_COUNT(edges); i++) {
        for (int round = 0; round < 2; round++) {
            bh_buffer *buffer = make(s.context, edges[i], s.a, 0);
            unsigned char *bytes = (unsigned char *)(void *)fx_pointer(buffer);
            BHT_EQ((uintptr_t)bytes % 4096, 0);
            for (uint64_t at = 0; at < edges[i]; at++) {
                BHT_EQ(bytes[at], 0);
            }
            if (edges[i] && edges[i] % 4 == 0) {
                fill(s.a, buffer, 0xEEEEEEEE);
                expect_words(buffer, 0xEEEEEEEE);
            }
            if (edges[i]) {
                bytes[edges[i] - 1] = 1;
            }
            bh_buffer_release(buffer);
            bh_stats stats = fx_stats(s.context);
            /* At most a quarter is lost, and a page. */
            BHT_LE(stats.pool_bytes, edges[i] ? edges[i] + edges[i] / 4 + 4096 : 0);
            BHT_GE(stats.pool_bytes, edges[i]);
            BHT_EQ(stats.pool_blocks, edges[i] ? 1 : 0);
        }
        BHT_EQ(bh_context_trim(s.context, 0, NULL), BH_OK);
    }
    expect_well(&s);
}

static bool write_text(const char *dir, const char *name, const char *text) {
    char path[160];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return good;
}

/* More than our memory cgroup has left is refused: reserving it would have the kernel kill us.
 * Where root has no v1 hierarchy to make a group in (containers, v2), supervisor_cgroup has made-up
 * ones. */
TEST(more_than_the_cgroup_has) {
    char group[128];
    snprintf(group, sizeof group, "/sys/fs/cgroup/memory/bulkhead-test-%d", (int)getpid());
    if (BHT_ASAN || BHT_TSAN || mkdir(group, 0700) != 0) {
        return; /* a sanitizer's own memory counts, too */
    }
    BHT_TRUE(write_text(group, "memory.limit_in_bytes", "256M"));
    BHT_TRUE(write_text(group, "cgroup.procs", "0"));
    bh_context *context = fx_context(NULL);
    fx_no_buffer(context, 512ull << 20, (bh_buffer_options){0}, BH_NO_MEMORY,
                 "this process's cgroup");
    int fd = memfd_create("holes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    BHT_EQ(ftruncate(fd, 512 << 20), 0);
    fx_no_buffer(context, 512ull << 20, (bh_buffer_options){.memfd = &fd}, BH_NO_MEMORY,
                 "the memfd's holes: 536870912 bytes");
    close(fd);
    fx_buffer(context, 64ull << 20);
    fx_release_all();
    BHT_TRUE(write_text("/sys/fs/cgroup/memory", "cgroup.procs", "0"));
    WAIT_UNTIL(rmdir(group) == 0, 5000); /* what has ended leaves it a moment later */
}
