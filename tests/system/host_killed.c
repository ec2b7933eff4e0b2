/* A host that is killed while an endless kernel runs: its worker's watchdog sets the abort word
 * before anybody is killed, so that nothing runs on on the device, and all processes are gone soon
 * (case 51; docs/trust.md). */
#include "fixture.h"
#include "ipc/progress.h"
#include "tamper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Long where a driver cuts loops short, and soon ended all the same. */
#define GROUPS 2048

enum { BELOW = 32 };

struct scene {
    pid_t host, worker, below[BELOW];
    size_t count;
    const struct bhi_progress_header *progress; /* of the worker */
    size_t bytes;
};

static bh_event *launch(bh_context *context, bh_stream *stream) {
    const bh_binding binding = bh_bind_read_write(0, fx_words(context, 64, 0));
    return fx_launch(stream, fx_kernel(context, "hang"), GROUPS, &binding, 1, 0);
}

static _Noreturn void be_host(const char *faults, int say) {
    bh_context *context = fx_context(faults);
    bh_stream *stream = fx_stream(context, "culprit", BH_FOREVER);
    const pid_t worker = fx_ready(stream);
    fx_settle(context);
    launch(context, stream);
    BHT_EQ(write(say, &worker, sizeof worker), (ssize_t)sizeof worker);
    for (;;) {
        pause();
    }
}

/* The host has one worker, and so one memfd of that name. */
static void map_progress(struct scene *s) {
    char folder[64];
    char target[128];
    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)s->host);
    DIR *dir = opendir(folder);
    BHT_TRUE(dir);
    s->progress = NULL;
    for (const struct dirent *entry; !s->progress && (entry = readdir(dir));) {
        const ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (!strstr(target, "memfd:bulkhead-progress")) {
            continue;
        }
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
        struct stat st;
        BHT_TRUE(fd >= 0 && fstat(fd, &st) == 0);
        s->bytes = (size_t)st.st_size;
        void *at = mmap(NULL, s->bytes, PROT_READ, MAP_SHARED, fd, 0);
        BHT_TRUE(at != MAP_FAILED);
        close(fd);
        s->progress = at;
    }
    closedir(dir);
    BHT_TRUE(s->progress);
}

/* Returns when the kernel has been compiled and given to the device. */
static void set_scene(struct scene *s, const char *faults) {
    int say[2];
    BHT_EQ(pipe2(say, O_CLOEXEC), 0);
    s->host = fork();
    if (s->host == 0) {
        be_host(faults, say[1]);
    }
    BHT_EQ(read(say[0], &s->worker, sizeof s->worker), (ssize_t)sizeof s->worker);
    close(say[0]);
    close(say[1]);
    map_progress(s);
    WAIT_UNTIL(atomic_load(&s->progress->run_seq) >= 1, 20000);
    s->count = bht_descendants(s->host, s->below, BELOW);
    BHT_GE(s->count, 3); /* warden, zygote, worker */
    BHT_LE(s->count, BELOW);
}

static void kill_host(const struct scene *s) {
    fx_kill(s->host, SIGKILL);
    BHT_EQ(waitpid(s->host, NULL, 0), s->host);
}

/* Far below the patience of whoever would end it otherwise; bench-host-death measures how soon. */
static void expect_all_gone(struct scene *s, uint64_t within_ms) {
    WAIT_UNTIL(fx_nobody_left(), within_ms);
    for (size_t i = 0; i < s->count; i++) {
        BHT_EQ(bht_process_state(s->below[i]), 'X');
    }
    munmap((void *)(uintptr_t)s->progress, s->bytes);
}

/* The kernel was ended by its abort word. */
static void expect_told(struct scene *s) {
    WAIT_UNTIL(atomic_load(&s->progress->completed_seq) == 1, 20000);
    const struct bhi_result *results =
        (const struct bhi_result *)(const void *)((const char *)s->progress + 2 * 4096);
    BHT_EQ(results[1].seq, 1);
    BHT_EQ(results[1].status, BH_DEADLINE);
    expect_all_gone(s, 20000);
}

/* The zygote has the patience of a test here: the only thing that can end this kernel is its abort
 * word, and the result says that it was set. */
TEST(case_51_what_runs_is_told_to_end) {
    struct scene s;
    set_scene(&s, "*:farewell:*=fail");
    BHT_EQ(atomic_load(&s.progress->completed_seq), 0);
    kill_host(&s);
    expect_told(&s);
}

/* The same with the worker that ships: all that there was is gone soon. */
TEST(case_51_an_endless_kernel_keeps_nobody) {
    struct scene s;
    set_scene(&s, NULL);
    kill_host(&s);
    expect_all_gone(&s, 5 * BHT_WAIT_SECOND_MS);
}

/* A worker that does not hear of it is killed. */
TEST(case_51_a_stopped_worker_goes_too) {
    struct scene s;
    set_scene(&s, NULL);
    fx_stop(s.worker);
    kill_host(&s);
    expect_all_gone(&s, 5 * BHT_WAIT_SECOND_MS);
}

/* -- and the warden with it ------------------------------------------------------------------- */

static pid_t warden_of(const struct scene *s) {
    const pid_t warden = fx_parent(fx_parent(s->worker));
    BHT_EQ(fx_parent(warden), s->host);
    return warden;
}

/* Nobody says that the host has gone, and nobody is left to kill: the worker finds out by itself
 * that there is no host, and its zygote lives for that long. */
static void with_its_warden(const struct scene *s, bool warden_first) {
    const pid_t warden = warden_of(s);
    if (warden_first) {
        fx_stop(s->host); /* or it may kill the zygote of a dead warden before it dies */
        fx_kill(warden, SIGKILL);
    }
    kill_host(s);
    if (!warden_first) {
        fx_kill(warden, SIGKILL);
    }
}

static void case_51_host_and_warden_at_once(bool warden_first) {
    struct scene s;
    set_scene(&s, "*:farewell:*=fail");
    BHT_EQ(atomic_load(&s.progress->completed_seq), 0);
    with_its_warden(&s, warden_first);
    expect_told(&s);
}

TEST(case_51_first_the_host_then_the_warden) {
    case_51_host_and_warden_at_once(false);
}
TEST(case_51_first_the_warden_then_the_host) {
    case_51_host_and_warden_at_once(true);
}

/* Nothing outlives the two of them: not a worker that is stopped, not a zygote that is. */
TEST(case_51_nobody_outlives_both) {
    for (int stopped = 0; stopped < 3; stopped++) {
        struct scene s;
        set_scene(&s, NULL);
        const pid_t pid = stopped == 1 ? s.worker : fx_parent(s.worker);
        if (stopped != 0) {
            fx_stop(pid);
        }
        with_its_warden(&s, stopped == 2);
        expect_all_gone(&s, 5 * BHT_WAIT_SECOND_MS);
    }
}

/* The host lives: what ran has not run past a deadline, it is lost with its worker. */
TEST(the_warden_alone) {
    struct scene s = {.host = getpid()};
    bh_context *context =
        fx_context("*:farewell:*=fail"); /* there is time to tell it, if one did */
    bh_stream *stream = fx_stream(context, "widow", BH_FOREVER);
    s.worker = fx_ready(stream);
    map_progress(&s);
    bh_event *event = launch(context, stream);
    WAIT_UNTIL(atomic_load(&s.progress->run_seq) >= 1, 20000);
    fx_kill(warden_of(&s), SIGKILL);
    BHT_STR_HAS(fx_verdict(event).message, "died with its zygote");
    munmap((void *)(uintptr_t)s.progress, s.bytes);
    fx_expect_healthy(context, stream);
}
