/* When a submitter looks at the files of its shards, and for the answer of its probe. Its clock is
 * one of the test: a pause only moves it. */
#include "few_jobs.h"

#include <poll.h>
#include <time.h>

#include "batch/runner/cancel.h"
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

static uint64_t takes_ns; /* the next program does */

BHT_WRAP(int, poll, struct pollfd *fds, nfds_t count, int time) {
    now_ns += takes_ns;
    takes_ns = 0;
    return __real_poll(fds, count, time);
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

/* What its task of |round| leaves, whose array is 7 with the first round. */
static void end_round(uint32_t shard, uint32_t round) {
    char name[32], text[100];
    snprintf(name, sizeof name, "shards/%04u/ended", shard);
    snprintf(text, sizeof text, "%s %u %u 0 n1\n", batch.array.id, round, 7 + round);
    put_file(name, text, 0600);
}

static void end_shard(uint32_t shard) {
    end_round(shard, 0);
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

/* Slurm's queue has these tasks: "ARRAY_SHARD STATE ROUND", separated by blanks. */
static void put_queue(const char *tasks) {
    char text[1024] = "#!/bin/sh\n";
    unsigned array, shard, round;
    char state[32];
    for (int used; sscanf(tasks, "%u_%u %31s %u%n", &array, &shard, state, &round, &used) == 4;
         tasks += used) {
        sprintf(text + strlen(text), "echo '%u|%u|%s||bulkhead:%s:%u|None'\n", array, shard, state,
                batch.array.id, round);
    }
    put_file("squeue", text, 0700);
}

/* An sbatch whose answer did not come may have submitted an array that is none of the batch's. */
TEST(test_a_task_of_another_array) {
    make_batch(1);
    put_queue("7_0 RUNNING 0 6_0 NODE_FAIL 0");
    batch.ends_at = 10;
    watch(true);
}

/* However long sbatch took: what it has sent may arrive some seconds later. */
TEST(test_a_request_that_arrives_late) {
    const struct bhi_slurm_client client = {.lock = -1, .patience_ns = 1000000 * MS};
    const char *const none[] = {NULL};
    const struct bhi_slurm_submission submission = {
        .comment = "ours", .script = "script", .options = none};
    uint64_t job = 0;
    make_batch(1);
    put_file("sbatch",
             "#!/bin/sh\n[ ! -e $0.was ] || { echo 18; exit; }\n: > $0.was\n"
             "echo 'sbatch: error: Socket timed out' >&2\nexit 1\n",
             0700);
    put_file("squeue",
             "#!/bin/sh\n[ ! -e $0.was ] || echo '17|0|PENDING||ours|None'\n"
             ": > $0.was\necho '19|0|PENDING||ours0|None'\n",
             0700);
    takes_ns = 20000 * MS;
    BHT_EQ(bhi_slurm_submit(&client, &submission, &job, &complaint), BHI_SLURM_DONE);
    BHT_EQ(job, 17);
}

/* One that can be submitted again: the array of a round has the number 7 + ROUND. */
static void make_whole_batch(uint32_t shards) {
    static char program[] = "/bin/true", here[] = "/";
    make_batch(shards);
    batch.array.program = program;
    batch.array.cwd = here;
    batch.array.chdir = strdup("/");
    batch.array.jobs = strdup("jobs.jsonl");
    batch.array.sizes = calloc(shards, sizeof *batch.array.sizes);
    put_file("sbatch",
             "#!/bin/sh\nfor word; do case $word in --comment=*) "
             "echo $((7 + ${word##*:})) ;; esac; done\n",
             0700);
}

static struct bhi_watch a_watch(uint64_t poll_ns, void (*tell)(void *user, const char *line)) {
    return (struct bhi_watch){
        .state = place.root,
        .array = &batch.array,
        .client = {.patience_ns = 1000 * MS, .lock = -1},
        .poll_ns = poll_ns,
        .tell = tell,
        .progress = on_progress,
    };
}

static uint64_t shows_ns;

/* Each other second, for a minute. */
static void show_now_and_then(void) {
    const uint64_t second = (now_ns - shows_ns) / (1000 * MS);
    put_queue(second % 2 ? "7_0 RUNNING 0" : "");
    if (second >= 60) {
        end_shard(0);
    }
}

/* A task that one look does not find is there: Slurm is asked again. */
TEST(test_a_task_that_is_missed_now_and_then) {
    make_whole_batch(1);
    struct bhi_watch watch = a_watch(1000 * MS, on_tell);
    shows_ns = now_ns;
    on_pause = show_now_and_then;
    BHT_EQ(bhi_watch_run(&watch, true, &complaint), BHI_WATCH_DONE);
    on_pause = NULL;
    bhi_watch_fini(&watch);
}

/* What an earlier task of a shard has said is not the word of one that runs. */
TEST(test_the_word_of_an_earlier_task) {
    make_batch(1);
    put_queue("9_0 RUNNING 2");
    end_shard(0);
    BHT_TRUE(bhi_slurm_may_have(batch.array.id, place.root));
    end_round(0, 2);
    BHT_TRUE(!bhi_slurm_may_have(batch.array.id, place.root));
}

static uint64_t ends_ns;

static void cancel_in_time(void) {
    if (now_ns >= ends_ns) {
        put_file(BHI_CANCEL_FILE, "", 0600);
        end_shard(1);
    }
}

static void on_any(void *user, const char *line) {}

/* While the controller is not reached, what is due is tried once a look, and not all the time. */
TEST(test_a_controller_that_is_down) {
    enum { LOOKS = 20 };
    make_whole_batch(2);
    put_queue("7_0 NODE_FAIL 0 7_1 RUNNING 0");
    put_file("sbatch", "#!/bin/sh\necho 'error: Unable to contact slurm controller' >&2\nexit 1\n",
             0700);
    struct bhi_watch watch = a_watch(60000 * MS, on_any);
    ends_ns = now_ns + LOOKS * watch.poll_ns;
    on_pause = cancel_in_time;
    BHT_EQ(bhi_watch_run(&watch, true, &complaint), BHI_WATCH_DONE);
    BHT_GT(batch.array.round_count, LOOKS / 2);
    BHT_LE(batch.array.round_count, LOOKS + 2);
    bhi_watch_fini(&watch);
}

static uint32_t stuck;

static void on_stuck(void *user, const char *line) {
    stuck += !!strstr(line, "no job ended in 6 tasks in a row");
}

/* A shard is given up when six tasks in a row end no job, also where an earlier one has. */
TEST(test_tasks_that_end_no_job) {
    make_whole_batch(1);
    snprintf(place.folder, sizeof place.folder, "%s/shards/0000/state", place.root);
    put_file("shards/0000/notes", "", 0600);
    fresh("a b");
    run("a");
    close_queue();
    put_queue("7_0 NODE_FAIL 0 8_0 NODE_FAIL 1 9_0 NODE_FAIL 2 10_0 NODE_FAIL 3 11_0 NODE_FAIL 4 "
              "12_0 NODE_FAIL 5 13_0 NODE_FAIL 6 14_0 NODE_FAIL 7");
    struct bhi_watch watch = a_watch(1000 * MS, on_stuck);
    ends_ns = now_ns + 3600000 * MS; /* otherwise it would never end */
    on_pause = cancel_in_time;
    BHT_EQ(bhi_watch_run(&watch, true, &complaint), BHI_WATCH_DONE);
    BHT_EQ(stuck, 1);
    BHT_EQ(batch.array.round_count, 1 + 6);
    bhi_watch_fini(&watch);
}

static uint64_t again_ns[4];
static uint32_t agains;

static void on_again(void *user, const char *line) {
    BHT_STR_HAS(line, "it is submitted again");
    again_ns[agains++] = now_ns;
    if (agains == BHT_COUNT(again_ns)) {
        end_round(0, agains);
    }
}

/* Each task of a shard that has left Slurm's queue has its time to say how it ended. */
TEST(test_each_task_has_time_for_its_word) {
    make_whole_batch(1);
    put_queue("7_0 COMPLETED 0 8_0 COMPLETED 1 9_0 COMPLETED 2 10_0 COMPLETED 3 11_0 COMPLETED 4");
    struct bhi_watch watch = a_watch(1000 * MS, on_again);
    uint64_t began_ns = now_ns;
    BHT_EQ(bhi_watch_run(&watch, true, &complaint), BHI_WATCH_DONE);
    BHT_EQ(agains, BHT_COUNT(again_ns));
    for (size_t i = 0; i < BHT_COUNT(again_ns); began_ns = again_ns[i++]) {
        BHT_GE(again_ns[i] - began_ns, BHI_WATCH_SETTLES_NS);
    }
    bhi_watch_fini(&watch);
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

/* A file is the same there if it has the kind, the size and the time that it has here. */
TEST(test_what_a_probe_has_seen) {
    static const struct {
        unsigned mode;
        int size, seconds;
        bool same;
    } rows[] = {{0100644, 3, 0, true},  {0100600, 3, 0, true},  {0040755, 3, 0, false},
                {0100644, 4, 0, false}, {0100644, 3, 1, false}, {0100644, 3, -1, false}};
    char file[96], text[160];
    struct stat status;
    put_file("file", "abc", 0644);
    snprintf(file, sizeof file, "%s/file", place.root);
    BHT_EQ(stat(file, &status), 0);
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        struct bhi_probe_path path = {.path = file};
        struct bhi_probe probe = {.paths = &path, .count = 1};
        const int length = snprintf(text, sizeof text, "%x %d %lld %s", rows[i].mode, rows[i].size,
                                    (long long)status.st_mtime + rows[i].seconds, file);
        BHT_EQ(bhi_probe_take_files(&probe, text, (size_t)length + 1), rows[i].same);
        BHT_EQ(path.is_seen, rows[i].same);
        BHT_EQ(bhi_probe_take_files(&probe, text, (size_t)length), 0); /* cut short */
    }
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
