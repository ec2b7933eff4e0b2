/* The journal on a disk that fails, and in a process that is killed, with the power or without: at every
 * call that changes a file, one after the other. What was acknowledged is there afterwards; nothing is
 * done twice; what cannot be recorded is said. */
#include "few_jobs.h"

#include <errno.h>
#include <jansson.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "faulty_memory.h"
#include "power.h"

enum { JOBS = 5 };
static const char jobs[] = "j0 j1:j0 j2 j3:j1,j2 j4";

/* What the world outside of the queue has seen; survives the process. */
struct world {
    bool added;
    bool sealed[JOBS];       /* it was acknowledged */
    bool placed[JOBS];       /* the outputs are in place */
    bool recorded[JOBS];     /* a flush after _ended has succeeded */
    uint32_t runs[JOBS];     /* how often it ran to its end and was placed */
    uint32_t answers, asked; /* of _sealed */
    uint32_t refused;
    bool finished;
};

static struct world *world;

static size_t index_of(const struct bhi_job *job) {
    return (size_t)(job->id[1] - '0');
}

static sem_t answered;
static bool was_durable;

static void answer(void *user, bool durable) {
    world->sealed[index_of(user)] |= durable;
    world->answers++;
    world->refused += !durable;
    was_durable = durable;
    sem_post(&answered);
}

/* Returns whether it was acknowledged. */
static bool seal_and_wait(struct bhi_job *job) {
    world->asked++;
    seal_job(job, "", answer, job);
    while (sem_wait(&answered) != 0) {
        continue;
    }
    return was_durable;
}

/* What a runner does with a job. False: the queue is broken. */
static bool run_job(struct bhi_job *job) {
    const size_t i = index_of(job);
    const struct bhi_attempt done = {.next = BHI_JOB_DONE, .started = true};
    if (!job->sealed) {
        bhi_queue_started(queue, job, 0);
        /* One is tried twice. */
        if (i == 2 && job->attempts == 0) {
            end(job, BHI_JOB_WAITING, BH_DEADLINE);
            return true;
        }
        if (!seal_and_wait(job)) {
            return false;
        }
    }
    world->runs[i] += !world->placed[i];
    world->placed[i] = true;
    bhi_queue_ended(queue, job, &done, 0);
    if (i % 2 == 0 && bhi_queue_flush(queue)) {
        world->recorded[i] = true;
    }
    return true;
}

/* As far as it goes. */
static void run_batch(void) {
    struct bhi_job *job;
    if (try_open(true, false) != BHI_QUEUE_OK) {
        return;
    }
    if (try_add(jobs) == BHI_QUEUE_OK) {
        world->added = true;
        while ((job = bhi_queue_take(queue)) && run_job(job)) {
            continue;
        }
        if (bhi_queue_broken(queue, &complaint)) {
            BHT_EQ(bhi_queue_take(queue), NULL);
        }
    }
    const bool closed = close_queue();
    world->finished = closed && !complaint.text[0];
}

struct look {
    enum bhi_job_state states[JOBS];
    size_t count;
};

static bool look_at(void *user, const struct bhi_job_record *record) {
    struct look *look = user;
    BHT_LE(record->number, JOBS);
    look->states[record->number - 1] = record->state;
    look->count++;
    return true;
}

/* Opens what was left behind on a disk that is well, compares it with the world, and goes on. */
static void check_and_finish(void) {
    struct look look = {.count = 0};
    struct bhi_job *job;
    power_end();
    again();
    BHT_TRUE(bhi_queue_flush(queue));
    BHT_TRUE(bhi_queue_each_job(queue, look_at, &look));
    if (look.count != 0 || world->added) {
        BHT_EQ(look.count, JOBS);
    }
    if (look.count == 0) {
        add(jobs);
    }
    for (size_t i = 0; i < look.count; i++) {
        const bool done = look.states[i] == BHI_JOB_DONE;
        BHT_TRUE(done || !world->recorded[i]);
        BHT_TRUE(!done || world->placed[i]);
        BHT_TRUE(done || !bhi_job_state_is_end(look.states[i]));
    }
    if (look.count && look.states[3] == BHI_JOB_DONE) {
        BHT_TRUE(look.states[1] == BHI_JOB_DONE && look.states[2] == BHI_JOB_DONE);
    }
    while ((job = bhi_queue_take(queue))) {
        const size_t i = index_of(job);
        BHT_TRUE(!look.count || look.states[i] != BHI_JOB_DONE);
        /* Acknowledged: it is never run again. */
        BHT_TRUE(job->sealed || !world->sealed[i]);
        BHT_TRUE(job->sealed || job->interrupted || !look.count || job->attempts > 0);
        BHT_TRUE(run_job(job));
    }
    BHT_TRUE(close_queue());
    for (int i = 0; i < JOBS; i++) {
        BHT_TRUE(world->placed[i]);
        BHT_EQ(world->runs[i], 1);
    }
    expect_jobs("j0 done; j1 done; j2 done; j3 done; j4 done; ");
}

static void clear_world(void) {
    memset(world, 0, sizeof *world);
    power_end();
    renew_place();
    power_begin(place.root);
}

/* Runs it in a process that is killed at a step; returns how that has ended. */
static int run_killed(long at) {
    int status;
    const pid_t child = fork();
    BHT_GE(child, 0);
    if (child == 0) {
        *power = (struct power){.mode = POWER_KILL, .at = at};
        run_batch();
        _exit(world->finished ? 0 : 1);
    }
    BHT_EQ(waitpid(child, &status, 0), child);
    return status;
}

TEST(test_killed_at_every_step) {
    long at = 1;
    for (;; at++) {
        clear_world();
        const int status = run_killed(at);
        if (WIFEXITED(status)) { /* there is no such step */
            BHT_EQ(WEXITSTATUS(status), 0);
            break;
        }
        BHT_EQ(WTERMSIG(status), SIGKILL);
        power_end();
        if (at % 2) {
            BHT_TRUE(power_lose(power_steps(), POWER_LOST));
        }
        check_and_finish();
    }
    BHT_WITHIN(at, 30, 1000);
}

/* Kills in a row, each a bit further on, in one state folder. */
TEST(test_killed_again_and_again) {
    uint64_t random = 19;
    clear_world();
    for (int kills = 0; kills < 12; kills++) {
        (void)run_killed(1 + (long)random_below(&random, 12));
    }
    check_and_finish();
}

/* A complaint says what has failed. SQLite does not always keep the errno: of a sync it says that it was
 * I/O; where a file cannot be made it tries to read it, and says why that has failed. */
static bool says_why(int error) {
    return (strstr(complaint.text, strerror(error)) || strstr(complaint.text, "disk I/O error") ||
            strstr(complaint.text, "unable to open database file") ||
            (error == ENOSPC && strstr(complaint.text, "the disk is full: free some space"))) &&
           strstr(complaint.text, place.folder);
}

static void fail_at_every_step(enum power_mode mode, int error) {
    long at = 1;
    bool hit = true;
    for (; hit; at++) {
        clear_world();
        const int fds = count_fds();
        *power = (struct power){.mode = mode, .error = error, .at = at};
        run_batch();
        hit = power->hit;
        power->mode = POWER_GOOD;
        /* It is said, or it was nothing that matters (a checkpoint is made again). */
        if (!world->finished && !says_why(error)) {
            BHT_FAIL("at %ld: \"%s\" does not say why", at, complaint.text);
        }
        BHT_EQ(world->answers, world->asked);
        BHT_LE(world->refused, 1);
        BHT_EQ(count_fds(), fds);
        check_and_finish();
    }
    BHT_WITHIN(at, 30, 1000);
}

TEST(test_a_write_fails) {
    fail_at_every_step(POWER_ONCE, EIO);
}

TEST(test_all_writes_fail) {
    fail_at_every_step(POWER_FROM, EIO);
}

TEST(test_the_disk_is_full) {
    fail_at_every_step(POWER_FROM, ENOSPC);
}

/* A flush of the queue is one of the disk, each time: nothing is left to the kernel. */
TEST(test_what_is_durable_was_synced) {
    clear_world();
    fresh("");
    long syncs = power->syncs;
    add(jobs);
    BHT_GT(power->syncs, syncs);
    struct bhi_job *job;
    while ((job = bhi_queue_take(queue))) {
        bhi_queue_started(queue, job, 0);
        syncs = power->syncs;
        BHT_TRUE(seal_and_wait(job));
        BHT_GT(power->syncs, syncs);
        syncs = power->syncs;
        end(job, BHI_JOB_DONE, BH_OK);
        BHT_TRUE(bhi_queue_flush(queue));
        BHT_GT(power->syncs, syncs);
    }
    syncs = power->syncs;
    BHT_TRUE(bhi_queue_flush(queue)); /* nothing to do */
    BHT_EQ(power->syncs, syncs);
}

/* Any allocation: closer together at first, where most are ours. */
TEST(test_memory_runs_out) {
    long at = 1, seen;
    for (;;) {
        clear_world();
        const int fds = count_fds();
        faulty_memory_fail(at);
        run_batch();
        seen = faulty_memory_seen();
        faulty_memory_fail(0);
        /* SQLite can do without some of what it asks for; jansson takes what it has no memory for
         * for nonsense. */
        if (!world->finished && !strstr(complaint.text, "out of memory") &&
            !strstr(complaint.text, "Cannot allocate memory") &&
            !strstr(complaint.text, "not JSON")) {
            BHT_FAIL("at %ld: \"%s\"", at, complaint.text);
        }
        BHT_EQ(world->answers, world->asked);
        BHT_EQ(count_fds(), fds);
        check_and_finish();
        if (at > seen) {
            break;
        }
        at += 1 + at / 64;
    }
    BHT_GT(seen, 500);
}

/* Once a group is lost none after it is written, even where that would do: what is there is a
 * beginning of what happened. */
TEST(test_broken_is_broken) {
    clear_world();
    fresh(jobs);
    struct bhi_job *first = start("j0"), *second = start("j2");
    BHT_TRUE(bhi_queue_flush(queue));
    *power = (struct power){.mode = POWER_ONCE, .error = ENOSPC, .at = 1};
    end(first, BHI_JOB_DONE, BH_OK);
    BHT_TRUE(!bhi_queue_flush(queue));
    BHT_TRUE(bhi_queue_broken(queue, &complaint));
    BHT_STR_HAS(complaint.text, "the disk is full");
    take(NULL);
    struct bhi_queue_counts counts;
    bhi_queue_counts(queue, &counts);
    BHT_EQ(counts.takeable, 0);
    BHT_TRUE(!seal_and_wait(second));
    end(second, BHI_JOB_DONE, BH_OK);
    BHT_TRUE(!bhi_queue_flush(queue));
    BHT_TRUE(!close_queue());
    power_end();
    expect_jobs("j0 running; j1 submitted; j2 running; j3 submitted; j4 waiting; ");
}

/* -- real disks ---------------------------------------------------------------------------------
 */

/* In a child of its own: a file system of |size| at |folder|. Returns whether there can be one. */
static bool mount_small(const char *folder, const char *size) {
    char options[64];
    snprintf(options, sizeof options, "size=%s,mode=700", size);
    return bht_own_mounts() && mount("tmpfs", folder, "tmpfs", 0, options) == 0;
}

/* What a body answers where it may not mount: workers need namespaces, too, so that is a failure.
 */
enum { NO_MOUNT = 77 };

static void in_child(int (*body)(void)) {
    int status;
    const pid_t child = fork();
    BHT_GE(child, 0);
    if (child == 0) {
        _exit(body());
    }
    BHT_EQ(waitpid(child, &status, 0), child);
    BHT_TRUE(WIFEXITED(status));
    BHT_EQ(WEXITSTATUS(status), 0);
}

static int fill_disk(void) {
    char words[512] = "", path[96];
    static char block[1 << 16];
    if (!mount_small(place.root, "1m")) {
        return NO_MOUNT;
    }
    fresh("a b");
    start("a");
    if (!bhi_queue_flush(queue)) {
        return 1;
    }
    /* Somebody else takes all there is. */
    snprintf(path, sizeof path, "%s/big", place.root);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (size_t size = sizeof block; size > 0; size /= 2) {
        while (write(fd, block, size) == (ssize_t)size) {
            continue;
        }
    }
    close(fd);
    for (int i = 0; i < 60; i++) {
        sprintf(words + strlen(words), "x%d ", i);
    }
    if (try_add(words) != BHI_QUEUE_ENVIRON || !strstr(complaint.text, "the disk is full")) {
        return 2;
    }
    if (try_open(true, false) != BHI_QUEUE_OK && !strstr(complaint.text, "the disk is full")) {
        return 3;
    }
    close_queue();
    /* There is room again. */
    unlink(path);
    again();
    struct bhi_queue_counts counts;
    bhi_queue_counts(queue, &counts);
    if (counts.total != 2) {
        return 4;
    }
    add(words);
    close_queue();
    return 0;
}

static int read_only_disk(void) {
    if (!mount_small(place.root, "4m")) {
        return NO_MOUNT;
    }
    fresh("a");
    close_queue();
    if (mount("none", place.root, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0) {
        return NO_MOUNT;
    }
    if (try_open(true, false) != BHI_QUEUE_ENVIRON ||
        !strstr(complaint.text, "Read-only file system")) {
        return 1;
    }
    snprintf(place.folder, sizeof place.folder, "%s/new", place.root);
    if (try_open(true, false) != BHI_QUEUE_ENVIRON ||
        !strstr(complaint.text, "cannot be made: Read-only file system")) {
        return 2;
    }
    return 0;
}

TEST(test_a_full_disk) {
    in_child(fill_disk);
}

TEST(test_a_read_only_disk) {
    in_child(read_only_disk);
}

int main(int argc, char **argv) {
    faulty_memory_set_up();
    json_set_alloc_funcs(malloc, free); /* those that fail, too */
    sem_init(&answered, 0, 0);
    world = mmap(NULL, sizeof *world, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (world == MAP_FAILED) {
        return 1;
    }
    return bht_main(argc, argv, NULL, 0);
}
