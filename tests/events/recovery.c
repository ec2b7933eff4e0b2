/* Cases 50 to 54 of docs/semantics.md: crash loops, and the deaths of others than a worker in
 * mid-job. */
#include "stage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tamper.h"

/* -- 50: crash loops -------------------------------------------------------------------------- */

/* A healthy stream, whose worker is the first, and one whose workers meet |faults|. */
struct loop {
    bh_context *context;
    bh_stream *healthy, *stream;
    bh_kernel *square;
    bh_buffer *x, *y;
    uint64_t began_ns;
};

static struct loop loop_open(const char *faults, uint32_t budget, uint64_t window_ns) {
    bh_context_options options = fx_options();
    options.restart_budget = budget;
    options.restart_window_ns = window_ns;
    struct loop l = {.context = fx_context_with(options, faults)};
    l.healthy = fx_stream(l.context, "healthy", FX_SECONDS);
    fx_ready(l.healthy);
    l.square = fx_kernel(l.context, "square");
    l.x = fx_words(l.context, 64, 0);
    l.y = fx_words(l.context, 64, 0);
    l.began_ns = bht_now_ns();
    l.stream = fx_stream(l.context, "loop", FX_SECONDS);
    return l;
}

static void expect_unavailable(struct loop *l) {
    for (int i = 0; i < 2; i++) {
        bh_detail detail;
        BHT_EQ(bh_stream_wait_ready(l->stream, FX_SECONDS, &detail), BH_UNAVAILABLE);
        BHT_EQ(detail.status, BH_UNAVAILABLE);
        BHT_TRUE(detail.message[0]);
    }
    BHT_EQ(bh_stream_worker_pid(l->stream), 0);
    BHT_EQ(bh_status_classify(BH_UNAVAILABLE), BH_STATUS_CLASS_ENVIRON);
}

TEST(case_50_a_crash_loop_is_backed_off_then_unavailable_then_reset) {
    enum { BUDGET = 7, DEATHS = BUDGET + 1 };
    char faults[256] = "2:warm_up:1=segv"; /* and of the one that the reset pays for */
    for (int worker = 3; worker <= DEATHS + 2; worker++) {
        const size_t used = strlen(faults);
        snprintf(faults + used, sizeof faults - used, ",%d:warm_up:1=segv", worker);
    }
    struct loop l = loop_open(faults, BUDGET, 60000 * bht_slowness() * FX_MS);
    bh_event *early = fx_square(l.stream, l.square, l.x, l.y);
    expect_unavailable(&l);
    /* Seven times again: at once, then after 10, 20, … and 320 ms. Without these pauses that is
     * less than half of it. */
    BHT_GE(bht_now_ns() - l.began_ns, 630 * FX_MS);
    bh_detail detail;
    BHT_EQ(bh_stream_wait_ready(l.stream, FX_SECONDS, &detail), BH_UNAVAILABLE);
    BHT_STR_HAS(detail.message, "SIGSEGV");
    BHT_STR_HAS(detail.message, "warm");
    bh_verdict verdict = ev_poisoned(early, BH_UNAVAILABLE, early, 0, BH_EXECUTED_NO);
    BHT_EQ(verdict.worker_pid, 0);
    BHT_STR_HAS(verdict.message, "SIGSEGV");
    /* What is submitted now has its answer at once. */
    bh_event *late = fx_square(l.stream, l.square, l.x, l.y);
    BHT_EQ(bh_event_query(late), BH_EVENT_POISONED);
    ev_poisoned(late, BH_UNAVAILABLE, late, 0, BH_EXECUTED_NO);
    fx_expect_healthy(l.context, l.healthy);
    BHT_EQ(bh_stream_reset(l.stream, NULL), BH_OK);
    /* A fresh budget: it pays for the next worker, the last one with the fault. */
    fx_expect_healthy(l.context, l.stream);
    BHT_EQ(bh_stream_synchronize(l.stream, FX_SECONDS, NULL), BH_OK);
    ev_poisoned(early, BH_UNAVAILABLE, early, 0, BH_EXECUTED_NO);
}

/* The budget is N in T: when T has passed the next submission gets a worker, and nobody had to
 * reset anything. */
TEST(case_50_it_heals_when_the_window_has_passed) {
    const uint64_t window_ns = 2 * BHT_SECOND_MS * FX_MS;
    struct loop l = loop_open("2:warm_up:1=segv,3:warm_up:1=segv", 1, window_ns);
    expect_unavailable(&l);
    uint64_t spent_ns = bht_now_ns();
    bh_event *before = fx_square(l.stream, l.square, l.x, l.y);
    ev_poisoned(before, BH_UNAVAILABLE, before, 0, BH_EXECUTED_NO);
    WAIT_UNTIL(bht_now_ns() > spent_ns + window_ns, 20000);
    bh_event *after = fx_square(l.stream, l.square, l.x, l.y);
    ev_ready(after);
    ev_poisoned(before, BH_UNAVAILABLE, before, 0, BH_EXECUTED_NO);
    fx_expect_healthy(l.context, l.stream);
    fx_expect_healthy(l.context, l.healthy);
}

/* Ends the idle worker with |signal|: if it could have sent that itself, the budget pays for it, unless
 * it had completed something. */
static void end_idle(bh_stream *stream, int signal) {
    pid_t pid = fx_ready(stream);
    fx_kill(pid, signal);
    WAIT_UNTIL(bh_stream_worker_pid(stream) != pid, 20000);
}

TEST(case_50_two_deaths_in_one_window_are_too_many_for_a_budget_of_one) {
    struct loop l = loop_open(NULL, 1, 600000 * bht_slowness() * FX_MS);
    end_idle(l.stream, SIGSEGV);
    end_idle(l.stream, SIGSEGV);
    expect_unavailable(&l);
    fx_expect_healthy(l.context, l.healthy);
}

/* SIGKILL comes from others: that says nothing about the stream. */
TEST(case_50_kills_by_others_are_no_crash_loop) {
    struct loop l = loop_open(NULL, 1, 600000 * bht_slowness() * FX_MS);
    for (int i = 0; i < 4; i++) {
        end_idle(l.stream, SIGKILL);
    }
    fx_expect_healthy(l.context, l.stream);
}

/* However often they die: no crash loop, as long as something gets done. */
TEST(case_50_a_worker_that_got_something_done_is_no_crash_loop) {
    struct loop l = loop_open(NULL, 1, 600000 * bht_slowness() * FX_MS);
    for (int i = 0; i < 4; i++) {
        fx_expect_healthy(l.context, l.stream);
        end_idle(l.stream, SIGSEGV);
    }
    fx_expect_healthy(l.context, l.stream);
}

TEST(case_50_a_healthy_period_gives_the_budget_back) {
    const uint64_t window_ns = BHT_SECOND_MS / 2 * FX_MS;
    struct loop l = loop_open(NULL, 1, window_ns);
    for (int i = 0; i < 3; i++) {
        end_idle(l.stream, SIGSEGV);
        fx_ready(l.stream);
        uint64_t healthy_ns = bht_now_ns();
        WAIT_UNTIL(bht_now_ns() > healthy_ns + window_ns, 20000);
    }
    fx_expect_healthy(l.context, l.stream);
}

/* Each job kills its worker in the middle. That is the job's doing, and told of the job: the budget
 * is for workers that die for nothing. What was behind the last one runs. */
TEST(case_50_jobs_that_kill_their_workers_are_no_crash_loop) {
    enum { BUDGET = 1, JOBS = BUDGET + 2 };
    struct loop l = loop_open(NULL, BUDGET, 600000 * bht_slowness() * FX_MS);
    bh_event *jobs[JOBS], *behind = NULL;
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = fx_hold(l.context, l.stream).event;
        if (i == JOBS - 1) {
            behind = fx_square(l.stream, l.square, l.x, l.y);
        }
        fx_kill(fx_ready(l.stream), SIGKILL);
        ev_poisoned(jobs[i], BH_WORKER_SIGNAL, jobs[i], 0, BH_EXECUTED_UNKNOWN);
    }
    ev_ready(behind);
    fx_expect_healthy(l.context, l.stream);
    fx_expect_healthy(l.context, l.healthy);
    for (int i = 0; i < JOBS; i++) {
        ev_poisoned(jobs[i], BH_WORKER_SIGNAL, jobs[i], 0, BH_EXECUTED_UNKNOWN);
    }
}

/* -- 51: the host is killed ------------------------------------------------------------------- */

enum { MEMFDS = 256 };

struct memfds {
    ino_t ids[MEMFDS];
    size_t count;
};

/* The library's memfds that |pid| has open. */
static struct memfds memfds_of(pid_t pid) {
    struct memfds found = {.count = 0};
    char folder[64], target[128];
    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        struct stat info;
        if (length <= 0 || fstatat(dirfd(dir), entry->d_name, &info, 0) != 0) {
            continue;
        }
        target[length] = 0;
        if (strstr(target, "memfd:bulkhead-") && found.count < MEMFDS) {
            found.ids[found.count++] = info.st_ino;
        }
    }
    if (dir) {
        closedir(dir);
    }
    return found;
}

static bool has(const struct memfds *memfds, ino_t id) {
    for (size_t i = 0; i < memfds->count; i++) {
        if (memfds->ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* Whether |pid| has one of them mapped. */
static bool maps_any(pid_t pid, const struct memfds *memfds) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        unsigned long long id;
        found = strstr(line, "memfd:bulkhead-") && sscanf(line, "%*s %*s %*s %*s %llu", &id) == 1 &&
                has(memfds, (ino_t)id);
    }
    if (file) {
        fclose(file);
    }
    return found;
}

/* Processes of the machine that have one of them open or mapped. */
static size_t holders(const struct memfds *memfds) {
    size_t count = 0;
    DIR *dir = opendir("/proc");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0) {
            continue;
        }
        struct memfds own = memfds_of(pid);
        bool holds = maps_any(pid, memfds);
        for (size_t i = 0; i < own.count && !holds; i++) {
            holds = has(memfds, own.ids[i]);
        }
        count += holds;
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

/* Sockets in one of the host's folders. */
static size_t sockets_of(pid_t host) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "/bulkhead-%d-", (int)host);
    return bht_proc_lines(getpid(), "net/unix", prefix);
}

static size_t folders_of(pid_t host) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "bulkhead-%d-", (int)host);
    size_t count = 0;
    DIR *dir = opendir("/tmp");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

/* Until the test lets go of its pipe. */
static void outlive(int say, int held[2]) {
    char byte;
    close(say);
    close(held[1]);
    (void)!read(held[0], &byte, 1);
    _exit(0);
}

/* |keep_child|: the host has forked a child that outlives it and holds all its descriptors. */
static void host_is_killed(bool keep_child) {
    unsetenv("XDG_RUNTIME_DIR");
    int say[2], held[2];
    BHT_EQ(pipe(say), 0);
    BHT_EQ(pipe(held), 0);
    pid_t host = fork();
    if (host == 0) {
        struct stage s = stage_open_with("*:load_read:1=stop", BH_FOREVER);
        stage_gate(&s); /* a is in mid-job, b idle, and a loader in mid-read */
        bh_file_source source = {.struct_size = sizeof source};
        source.path = "/proc/self/exe";
        source.format = BH_FILE_RAW;
        bh_buffer *file = NULL;
        BHT_EQ(fx_from_file(s.context, &source, &file, NULL), BH_OK);
        bh_event *reader = ev_square(&s, s.b, file, s.y, NULL, 0);
        BHT_TRUE(reader);
        fx_await_stopped();
        if (keep_child && fork() == 0) {
            outlive(say[1], held);
        }
        pid_t pids[2] = {s.pid, fx_ready(s.b)};
        BHT_EQ(write(say[1], pids, sizeof pids), (ssize_t)sizeof pids);
        for (;;) {
            pause();
        }
    }
    pid_t pids[2], below[32];
    BHT_EQ(read(say[0], pids, sizeof pids), (ssize_t)sizeof pids);
    size_t count = bht_descendants(host, below, BHT_COUNT(below));
    BHT_GE(count, 2 + 2 * PROCESSES_A_WORKER + keep_child);
    BHT_LE(count, BHT_COUNT(below));
    const struct memfds memfds = memfds_of(host);
    BHT_GE(memfds.count, 2 * 2 + 5); /* lanes and progress, buffers; kernels */
    BHT_LT(memfds.count, MEMFDS);
    BHT_GE(holders(&memfds), 2);
    BHT_GT(folders_of(host), 0);
    BHT_GT(sockets_of(host), 0);
    char group[512];
    BHT_EQ(fx_find_group(host, group), fx_in_group(pids[0])); /* no group: there can be none */
    fx_kill(host, SIGKILL);
    BHT_EQ(waitpid(host, NULL, 0), host);
    for (int i = 0; i < 2; i++) {
        WAIT_UNTIL(bht_process_state(pids[i]) == 'X' || bht_process_state(pids[i]) == 'Z', 20000);
    }
    WAIT_UNTIL(folders_of(host) == 0, 20000);
    close(held[0]);
    close(held[1]); /* the child goes now, and with it what it held for the host */
    WAIT_UNTIL(fx_nobody_left(), 5 * BHT_WAIT_SECOND_MS);
    for (size_t i = 0; i < count; i++) {
        BHT_EQ(bht_process_state(below[i]), 'X');
    }
    WAIT_UNTIL(holders(&memfds) == 0, 20000);
    WAIT_UNTIL(sockets_of(host) == 0, 20000);
    WAIT_UNTIL(!fx_find_group(host, group), 20000);
    close(say[0]);
    close(say[1]);
}

TEST(case_51_the_host_is_killed) {
    host_is_killed(false);
}

TEST(case_51_the_host_is_killed_and_a_forked_child_lives) {
    host_is_killed(true);
}

/* -- 52: SIGSTOP ------------------------------------------------------------------------------ */

TEST(case_52_stopped_in_mid_job) {
    struct stage s = stage_open_with(NULL, STAGE_DEADLINE_NS);
    stage_gate(&s);
    fx_stop(s.pid);
    fx_open(s.word); /* it could end, if it ran */
    bh_event *behind = ev_square(&s, s.a, s.x, s.y, NULL, 0);
    fx_expect_healthy(s.context, s.b);
    bh_verdict verdict = ev_poisoned(s.bad, BH_DEADLINE, s.bad, 0, BH_EXECUTED_UNKNOWN);
    BHT_EQ(verdict.limit, STAGE_DEADLINE_NS);
    BHT_EQ(verdict.blame, BH_BLAME_NONE);
    BHT_EQ(verdict.worker_pid, s.pid);
    BHT_GE(verdict.ended_ns - verdict.started_ns, STAGE_DEADLINE_NS);
    ev_ready(behind);
    ev_squares(s.y, 1);
    ev_well(&s);
    BHT_NE(bh_stream_worker_pid(s.a), s.pid);
}

/* While idle: nobody notices before there is work, and then the deadline does. Nothing of the work has
 * begun, so the next worker does it (E13). */
TEST(case_52_stopped_while_idle) {
    struct stage s = stage_open_with(NULL, STAGE_DEADLINE_NS);
    fx_stop(s.pid);
    bh_event *event = ev_square(&s, s.a, s.x, s.y, NULL, 0);
    ev_ready(event);
    BHT_NE(fx_verdict(event).worker_pid, s.pid);
    ev_squares(s.y, 1);
    ev_well(&s);
}

/* -- 53: the zygote is killed ----------------------------------------------------------------- */

TEST(case_53_the_zygote_is_killed) {
    struct stage s = stage_open();
    bh_stream *idle = fx_stream(s.context, "idle", FX_SECONDS);
    pid_t idle_pid = fx_ready(idle), zygote = fx_parent(s.pid);
    BHT_GT(zygote, 1);
    BHT_EQ(fx_parent(idle_pid), zygote);
    bh_event *on_b = fx_hold(s.context, s.b).event;
    bh_event *dependent = ev_square(&s, s.a, s.gate, s.y, NULL, 0);
    bh_event *innocent = ev_square(&s, s.a, s.x, s.z, NULL, 0);
    fx_kill(zygote, SIGKILL);
    bh_verdict verdict = ev_poisoned(s.bad, BH_ZYGOTE_LOST, s.bad, 0, BH_EXECUTED_UNKNOWN);
    BHT_EQ(verdict.worker_pid, s.pid);
    BHT_EQ(bh_status_classify(BH_ZYGOTE_LOST), BH_STATUS_CLASS_VICTIM);
    ev_poisoned(on_b, BH_ZYGOTE_LOST, on_b, 0, BH_EXECUTED_UNKNOWN);
    ev_poisoned(dependent, BH_ZYGOTE_LOST, s.bad, 1, BH_EXECUTED_NO);
    ev_ready(innocent); /* it had not begun: it runs with the new one (E13) */
    ev_squares(s.z, 1);
    ev_well(&s);
    fx_expect_healthy(s.context, idle);
    pid_t next = fx_parent(fx_ready(s.a));
    BHT_NE(next, zygote);
    BHT_EQ(fx_parent(fx_ready(s.b)), next);
    BHT_EQ(fx_parent(fx_ready(idle)), next);
}

/* It dies with a worker asked of it that it has not begun: the next one is asked again. */
TEST(case_53_the_zygote_is_killed_before_it_forks) {
    struct stage s = stage_open_with(NULL, BH_FOREVER);
    pid_t zygote = fx_parent(s.pid);
    fx_stop(zygote);
    bh_stream *late = fx_stream(s.context, "late", FX_SECONDS);
    bh_event *waiting = ev_square(&s, late, s.x, s.y, NULL, 0);
    bh_event *idle = ev_square(&s, s.b, s.x, s.z, NULL, 0); /* its worker lives, and works */
    ev_ready(idle);
    BHT_EQ(bh_event_query(waiting), BH_EVENT_PENDING);
    fx_kill(zygote, SIGKILL);
    ev_ready(waiting);
    ev_squares(s.y, 1);
    ev_ready(idle);
    ev_squares(s.z, 1);
    BHT_NE(fx_parent(fx_ready(late)), zygote);
    BHT_NE(fx_parent(fx_ready(s.a)), zygote);
    BHT_NE(fx_ready(s.a), s.pid);
    ev_well(&s);
}

/* -- 54: what a compromised worker can do ----------------------------------------------------- */

/* While a's worker does |fault| in mid-job b works on; then there is one poisoned stream, and the
 * host has not grown. It ends |status|, or |other| where it is a matter of luck. */
static bh_verdict rogue(const char *fault, uint64_t deadline_ns, bh_status status,
                        bh_status other) {
    struct stage s = stage_open_with(fault, deadline_ns);
    bh_event *event = ev_square(&s, s.a, s.x, s.y, NULL, 0);
    bh_event *dependent = ev_square(&s, s.b, s.y, s.z, NULL, 0);
    bh_stream *c = fx_stream(s.context, "c", FX_SECONDS);
    uint64_t resident = bht_resident_bytes(getpid());
    for (int i = 0; i < 20; i++) {
        fx_expect_healthy(s.context, c);
    }
    if (fx_verdict(event).status == other) {
        status = other;
    }
    bh_verdict verdict = ev_poisoned(event, status, event, 0, BH_EXECUTED_UNKNOWN);
    BHT_EQ(verdict.worker_pid, s.pid);
    BHT_LT(verdict.ended_ns - verdict.submitted_ns, 10 * BHT_SECOND_MS * FX_MS);
    ev_poisoned(dependent, status, event, 1, BH_EXECUTED_NO);
    ev_content_poisoned(s.y, status);
    ev_squares(s.x, 0);
    BHT_EQ(bh_stream_synchronize(s.a, FX_SECONDS, NULL), status);
    BHT_EQ(bh_stream_synchronize(c, FX_SECONDS, NULL), BH_OK);
    WAIT_UNTIL(bht_process_state(s.pid) == 'X' || bht_process_state(s.pid) == 'Z', 20000);
    ev_well(&s);
    if (!BHT_ASAN && !BHT_TSAN) {
        BHT_LT(bht_resident_bytes(getpid()), resident + (32ull << 20));
    }
    return verdict;
}

TEST(case_54_a_flood_of_control_messages) {
    BHT_STR_HAS(rogue("1:submitted:1=flood", FX_SECONDS, BH_PROTOCOL, BH_PROTOCOL).message,
                "too many log lines");
}

TEST(case_54_garbage_over_the_progress_page) {
    BHT_EQ(rogue("1:submitted:1=garbage", FX_SECONDS, BH_PROTOCOL, BH_PROTOCOL).exit_code, -1);
}

/* It is out of reach then, and does not end what it runs: the deadline does, if libzmq's own thread
 * does not notice first that its descriptors are gone: 4.3.4 aborts, 4.3.5 dies of SIGSEGV. */
TEST(case_54_closed_sockets) {
    bh_verdict verdict =
        rogue("1:submitted:1=close_hang", STAGE_DEADLINE_NS, BH_DEADLINE, BH_WORKER_SIGNAL);
    if (verdict.status == BH_DEADLINE) {
        BHT_EQ(verdict.limit, STAGE_DEADLINE_NS);
    } else {
        BHT_TRUE(verdict.signal == SIGABRT || verdict.signal == SIGSEGV);
    }
}

TEST(case_54_exit_0_in_mid_job) {
    bh_verdict verdict = rogue("1:submitted:1=exit0", FX_SECONDS, BH_WORKER_EXIT, BH_WORKER_EXIT);
    BHT_EQ(verdict.exit_code, 0);
    BHT_EQ(verdict.signal, 0);
    BHT_STR_HAS(verdict.message, "code 0");
}
