/* When a submitter looks at the files of its shards, and for the answer of its probe. Its clock is
 * one of the test: a pause only moves it. */
#include "few_jobs.h"

#include <poll.h>
#include <time.h>

#include "batch/slurm/array.h"
#include "batch/slurm/probe.h"
#include "batch/slurm/watch.h"
#include "tool/clock.h"

#define MS UINT64_C(1000000)

enum { TICK_MS = 200, NEAR_MS = 20, MOST_SHARDS = 40, FEEDS = 16 };

static uint64_t now_ns = 1000 * MS;
static uint32_t pauses;
static void (*on_pause)(void); /* NULL: nothing happens meanwhile */

BHT_WRAP(int, clock_gettime, clockid_t clock, struct timespec *out) {
    *out = (struct timespec){.tv_sec = (time_t)(now_ns / (1000 * MS)),
                             .tv_nsec = (long)(now_ns % (1000 * MS))};
    return 0;
}

BHT_WRAP(int, ppoll, struct pollfd *fds, nfds_t count, const struct timespec *time,
         const sigset_t *mask) {
    now_ns += (uint64_t)time->tv_sec * 1000 * MS + (uint64_t)time->tv_nsec;
    pauses++;
    if (on_pause) {
        on_pause();
    }
    return 0;
}

/* A batch whose array an earlier submitter has submitted, as job 7. */
static struct batch {
    struct bhi_slurm_array array;
    uint32_t shards, calls[MOST_SHARDS], all; /* of follow() */
    uint64_t at_ns;                           /* of the last call */
    uint32_t at_once, most_at_once;           /* calls at one time */
    uint64_t near_from, ends_at;              /* calls of all shards */
    uint64_t near_ns, ended_ns;               /* when that was */
    uint64_t reading_ns;                      /* how long a call takes */
    bool all_near;
} batch;

static void end_shard(uint32_t shard) {
    char name[32], text[100];
    snprintf(name, sizeof name, "shards/%04u/ended", shard);
    snprintf(text, sizeof text, "%s 0 7 0 n1\n", batch.array.id);
    put_file(name, text, 0600);
}

static void free_batch(void) {
    batch.array.sbatch_options = NULL;
    batch.array.program = batch.array.cwd = NULL;
    bhi_array_free(&batch.array);
}

static void make_batch(uint32_t shards) {
    static char *none[] = {NULL};
    uint32_t numbers[MOST_SHARDS];
    free_batch();
    batch = (struct batch){.shards = shards};
    renew_place();
    for (uint32_t i = 0; i < shards; i++) {
        numbers[i] = i;
    }
    BHT_TRUE(bhi_array_init(&batch.array, &complaint));
    batch.array.shards = shards;
    batch.array.sbatch_options = none;
    BHT_NE(bhi_array_add_round(&batch.array, numbers, shards, "first"), NULL);
    batch.array.rounds[0].job = 7;
    /* Slurm's queue is empty; it is looked at once in the time of a test. */
    put_file("squeue", "#!/bin/sh\nexit 0\n", 0700);
    BHT_EQ(setenv("PATH", place.root, 1), 0);
}

static void on_tell(void *user, const char *line) {
    BHT_FAIL("%s", line);
}

static void on_progress(void *user, const struct bhi_watch_progress *progress) {}

static uint64_t on_follow(void *user, uint32_t shard, uint64_t most_ns) {
    BHT_EQ(most_ns, TICK_MS * MS);
    BHT_LT(shard, batch.shards);
    batch.calls[shard]++;
    batch.all++;
    batch.at_once = batch.at_ns == now_ns ? batch.at_once + 1 : 1;
    batch.at_ns = now_ns;
    if (batch.at_once > batch.most_at_once) {
        batch.most_at_once = batch.at_once;
    }
    if (batch.all == batch.near_from) {
        batch.near_ns = now_ns;
    }
    if (batch.all == batch.ends_at) {
        batch.ended_ns = now_ns;
        for (uint32_t i = 0; i < batch.shards; i++) {
            end_shard(i);
        }
    }
    const bool near = batch.near_from && batch.all >= batch.near_from;
    now_ns += batch.reading_ns;
    return near && (batch.all_near || shard == 0) ? NEAR_MS * MS : most_ns;
}

static void watch(bool follows) {
    struct bhi_watch watch = {
        .state = place.root,
        .array = &batch.array,
        .client = {.patience_ns = 1000 * MS, .lock = -1},
        .poll_ns = 1000000 * MS,
        .tell = on_tell,
        .progress = on_progress,
        .follow = follows ? on_follow : NULL,
    };
    BHT_EQ(bhi_watch_run(&watch, true, &complaint), BHI_WATCH_DONE);
    BHT_TRUE(bhi_watch_is_over(&watch));
    bhi_watch_fini(&watch);
}

/* A shard that is nearly through is looked at every 20 ms, others each tick. */
TEST(test_the_end_is_near) {
    make_batch(2);
    batch.near_from = 5;
    batch.ends_at = 60;
    watch(true);
    const uint64_t took_ms = (batch.ended_ns - batch.near_ns) / MS;
    BHT_WITHIN(took_ms, (60 - 5) * NEAR_MS * 8 / 10, (60 - 5) * NEAR_MS);
    BHT_LE(batch.calls[1], 3 + 1 + took_ms / TICK_MS);
    BHT_LE(now_ns - batch.ended_ns, TICK_MS * MS);
}

TEST(test_the_end) {
    for (uint64_t calls = 57; calls < 60; calls++) { /* at the beginning of a tick, and between */
        make_batch(1);
        batch.near_from = 5;
        batch.ends_at = calls;
        watch(true);
        BHT_LE(now_ns - batch.ended_ns, NEAR_MS * MS);
    }
}

/* Of many shards some are read each tick, and all have their turn. */
TEST(test_many_shards) {
    for (int near = 0; near < 2; near++) {
        make_batch(MOST_SHARDS);
        batch.near_from = (uint64_t)near;
        batch.all_near = near;
        batch.ends_at = 20 * MOST_SHARDS;
        const uint64_t began_ns = now_ns;
        watch(true);
        BHT_LE(batch.most_at_once, near ? 2 * FEEDS : FEEDS);
        BHT_GE((batch.ended_ns - began_ns) / MS,
               (uint64_t)(near ? NEAR_MS : TICK_MS) * (20 * MOST_SHARDS / (2 * FEEDS) - 1));
        for (uint32_t i = 0; i < MOST_SHARDS; i++) {
            BHT_GT(batch.calls[i], 0);
        }
    }
}

/* Reading that takes long does not keep the ends from being seen. */
TEST(test_slow_reading) {
    make_batch(MOST_SHARDS);
    batch.reading_ns = 150 * MS;
    batch.ends_at = 10;
    watch(true);
    BHT_LE(batch.all, 11);
    BHT_LE(now_ns - batch.ended_ns, 2 * TICK_MS * MS);
}

/* A file that says how a task ended is enough, also where no feed can be read. */
TEST(test_no_feeds) {
    make_batch(MOST_SHARDS);
    const uint64_t began_ns = now_ns;
    for (uint32_t i = 0; i < MOST_SHARDS; i++) {
        end_shard(i);
    }
    watch(false);
    BHT_LE(now_ns - began_ns, TICK_MS * MS);
}

static struct bhi_probe asked;
static uint64_t answers_ns;

static void answer(void) {
    char name[80];
    snprintf(name, sizeof name, "probe/answer.%s", asked.record.nonce);
    if (now_ns >= answers_ns) {
        put_file(name, "n1\nbulkhead 1.2.3\n", 0600);
        on_pause = NULL;
    }
}

/* An answer is seen soon: in an eighth of the time that it took, or a fifth of a second. */
TEST(test_the_answer_of_a_probe) {
    static const uint64_t takes_ms[] = {5, 130, 990, 1500, 9000};
    for (size_t i = 0; i < BHT_COUNT(takes_ms); i++) {
        static char program[] = "/bin/true", here[] = "/";
        const struct bhi_slurm_client client = {.lock = -1, .patience_ns = 1000 * MS};
        make_batch(1);
        put_file("sbatch", "#!/bin/sh\necho 18\n", 0700);
        batch.array.program = program;
        batch.array.cwd = here;
        asked = (struct bhi_probe){.state = place.root,
                                   .array = &batch.array,
                                   .client = &client,
                                   .poll_ns = 1000000 * MS,
                                   .runs_ns = 1000000 * MS};
        answers_ns = now_ns + takes_ms[i] * MS;
        on_pause = answer;
        pauses = 0;
        BHT_EQ(bhi_probe_run(&asked, &complaint), BHI_PROBE_DONE);
        BHT_STR_EQ(asked.node, "n1");
        const uint64_t least = NEAR_MS * MS, late = takes_ms[i] * MS / 8 + least;
        BHT_LE(now_ns - answers_ns, late < TICK_MS * MS ? late : TICK_MS * MS);
        BHT_LE(pauses, 60 + takes_ms[i] / TICK_MS);
    }
}

BHT_AT_START(bht_end_with(free_batch))
