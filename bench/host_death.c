/* bench-host-death: a host, or a worker, is killed with -9 while a kernel that never ends runs. How
 * long do the others on that device stand still, and when is the last of the host's processes gone,
 * or has the worker's stream a good result again?
 *
 *     bench-host-death [--device D] [--worker PATH] [--rounds N] [--trusted] [--warden] [--each]
 *                      [--workers] [--starting] [--quick] [--strict [--stall MS] [--gone MS]]
 *
 * The host's spare worker and its sentinel are ready when the kernel begins; with --starting the
 * host does not wait for them. --workers kills a worker, not the host. --warden kills the host's
 * warden in the same moment, --each prints each process's end.
 *
 * --strict: exit status 3 where a bound is missed. They are for a host that is killed while a
 * guarded kernel runs: each of the neighbour's jobs within STALL_MS, the last process gone within
 * GONE_MS in the median. --stall and --gone replace them.
 *
 * The neighbour is a context of this program's own, with one small job after the other. The host is
 * this program once more (--host X Y). */
#include "bench.h"

#include <bulkhead/bulkhead.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GO         0x600D600Du /* ends the loop of hang.comp */
#define RUNNING_NS 100000000   /* for the kernel to be all over the device */
#define MOST_BELOW 64
#define MOST_ROUND 64
#define STALL_MS   150
#define GONE_MS    300

extern char **environ;

static const uint32_t HANG[] =
#include "hang.inc"
    ;

struct options {
    const char *device, *worker;
    unsigned rounds;
    unsigned stall_ms, gone_ms; /* the bounds */
    bool trusted, each, warden, workers, starting, strict;
};

/* -- a context with one stream ---------------------------------------------------------------- */

struct side {
    bh_context *context;
    bh_stream *stream;
    bh_kernel *kernel;
    bh_buffer *data;
};

static void print_line(bh_log_level level, const char *line, void *user) {
    (void)user;
    printf("  %.3f %d %s\n", (double)(bench_now_ns() / 1000 % 1000000000) / 1e3, (int)level, line);
}

static struct side open_side(const struct options *options, const char *name, const uint32_t *code,
                             size_t bytes, bool trusted) {
    struct side side = {
        .context = bench_context(BENCH_WITH(bh_context_options, .worker_path = options->worker,
                                            .log = options->each ? print_line : NULL))};
    side.stream = bench_stream(
        side.context, BENCH_WITH(bh_stream_options, .name = name, .device = options->device));
    side.kernel = bench_kernel(side.context, code, bytes,
                               BENCH_WITH(bh_kernel_options, .name = name, .trusted = trusted));
    side.data = bench_buffer(side.context, NULL, BH_MEMORY_HOST, 4096);
    bench_ready(side.stream);
    return side;
}

static bh_event *launch(struct side *side, uint32_t x, uint32_t y) {
    const bh_binding binding = bh_bind_read_write(0, side->data);
    const bh_command command = {
        .type = BH_COMMAND_DISPATCH,
        .dispatch = {
            .kernel = side->kernel, .groups = {x, y, 1}, .bindings = &binding, .binding_count = 1}};
    return bench_submit(side->stream, BENCH_WITH(bh_submit_info, .commands = &command,
                                                 .command_count = 1, .deadline_ns = BH_FOREVER));
}

static void run_once(struct side *side) {
    bench_finish(launch(side, 1, 1));
}

static void set_word(struct side *side, uint32_t value) {
    void *words = bench_map(side->data, BH_MAP_DISCARD);
    memset(words, 0, 4096);
    memcpy(words, &value, sizeof value);
}

/* -- the host that is killed ----------------------------------------------------------------- */

/* Until no process of the context is starting any more. */
static void await_calm(bh_context *context) {
    static char text[1 << 16];
    const uint64_t end = bench_now_ns() + BENCH_TIMEOUT_NS;
    const struct timespec a_moment = {.tv_nsec = 5000000};
    do {
        if (bench_now_ns() > end) {
            bench_die("a process of the host does not get ready:\n%s", text);
        }
        nanosleep(&a_moment, NULL);
        bh_context_describe(context, text, sizeof text);
    } while (strstr(text, "has to be ready") || strstr(text, "wait for a sentinel") ||
             !strstr(text, "spare worker"));
}

/* Opens |side| and begins the kernel that never ends; it is all over the device then. */
static bh_event *begin_hang(const struct options *options, struct side *side, uint32_t x,
                            uint32_t y) {
    const struct timespec a_while = {.tv_nsec = RUNNING_NS};
    *side = open_side(options, "culprit", HANG, sizeof HANG, options->trusted);
    set_word(side, GO); /* compiled before it is timed */
    run_once(side);
    if (!options->starting) {
        await_calm(side->context);
    }
    set_word(side, 0);
    bh_event *event = launch(side, x, y);
    nanosleep(&a_while, NULL);
    return event;
}

static _Noreturn void be_host(const struct options *options, uint32_t x, uint32_t y) {
    struct side side;
    (void)begin_hang(options, &side, x, y);
    if (write(STDOUT_FILENO, "r", 1) != 1) {
        exit(1);
    }
    for (;;) {
        pause();
    }
}

/* -- processes ------------------------------------------------------------------------------- */

static pid_t parent_of(const char *pid) {
    char path[300];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *file = fopen(path, "re");
    if (file) {
        if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1) {
            parent = 0;
        }
        fclose(file);
    }
    return parent;
}

struct family {
    size_t count;
    pid_t pids[MOST_BELOW];
    int fds[MOST_BELOW];
    char names[MOST_BELOW][16];
    uint64_t ended_ns[MOST_BELOW]; /* 0: it lives */
};

/* |root| and all below it. */
static void find_family(pid_t root, struct family *family) {
    pid_t *pids = family->pids;
    size_t count = 1;
    pids[0] = root;
    for (size_t before = 0; before != count;) {
        before = count;
        DIR *dir = opendir("/proc");
        for (const struct dirent *e; dir && (e = readdir(dir));) {
            const pid_t pid = (pid_t)atoi(e->d_name);
            const pid_t parent = pid > 0 ? parent_of(e->d_name) : 0;
            bool known = false;
            bool below = false;
            for (size_t i = 0; i < count; i++) {
                known |= pids[i] == pid;
                below |= pids[i] == parent;
            }
            if (pid > 0 && below && !known && count < MOST_BELOW) {
                pids[count++] = pid;
            }
        }
        if (dir) {
            closedir(dir);
        }
    }
    for (size_t i = 0; i < count; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/comm", (int)pids[i]);
        FILE *file = fopen(path, "re");
        if (!file || fscanf(file, "%15s", family->names[i]) != 1) {
            family->names[i][0] = '\0';
        }
        if (file) {
            fclose(file);
        }
        family->fds[i] = pidfd_open(pids[i], 0);
        family->ended_ns[i] = 0;
    }
    family->count = count;
}

/* Returns when the last one ended; each one's end is in |family|. */
static uint64_t await_family(struct family *family) {
    struct pollfd fds[MOST_BELOW];
    size_t alive = family->count;
    uint64_t last = 0;
    for (size_t i = 0; i < family->count; i++) {
        fds[i] = (struct pollfd){.fd = family->fds[i], .events = POLLIN};
        alive -= fds[i].fd < 0 ? 1 : 0;
    }
    while (alive > 0) {
        if (poll(fds, family->count, (int)(BENCH_TIMEOUT_NS / 1000000u)) < 1) {
            bench_die("a process of the host does not end");
        }
        last = bench_now_ns();
        for (size_t i = 0; i < family->count; i++) {
            if (fds[i].revents != 0) {
                family->ended_ns[i] = last;
                close(fds[i].fd);
                fds[i].fd = -1;
                fds[i].revents = 0;
                alive--;
            }
        }
    }
    return last;
}

/* -- the neighbour --------------------------------------------------------------------------- */

struct neighbour {
    struct side side;
    atomic_bool stop;
    _Atomic uint64_t done;
};

static void *work(void *argument) {
    struct neighbour *n = argument;
    while (!atomic_load(&n->stop)) {
        run_once(&n->side);
        atomic_fetch_add(&n->done, 1);
    }
    return NULL;
}

/* The second end of a job from here on: that one was begun after this was called. */
static void await_next(const struct neighbour *n) {
    const uint64_t wanted = atomic_load(&n->done) + 2;
    while (atomic_load(&n->done) < wanted) {
        (void)sched_yield();
    }
}

/* -- a round --------------------------------------------------------------------------------- */

struct round {
    uint64_t next_ns, gone_ns;
};

static struct round kill_a_host(const struct options *options, const struct neighbour *n,
                                const uint32_t grid[2]) {
    char x[16], y[16], device[64], worker[512];
    snprintf(x, sizeof x, "%u", grid[0]);
    snprintf(y, sizeof y, "%u", grid[1]);
    snprintf(device, sizeof device, "%s", options->device ? options->device : "");
    snprintf(worker, sizeof worker, "%s", options->worker ? options->worker : "");
    char self[] = "/proc/self/exe", host[] = "--host", trusted[] = "--trusted";
    char starting[] = "--starting", no[] = "";
    char *argv[] = {self,
                    host,
                    x,
                    y,
                    device,
                    worker,
                    options->trusted ? trusted : no,
                    options->starting ? starting : no,
                    NULL};
    int say[2];
    pid_t pid;
    char byte;
    posix_spawn_file_actions_t actions;
    if (pipe(say) != 0 || posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, say[1], STDOUT_FILENO) != 0 ||
        posix_spawn_file_actions_addclose(&actions, say[0]) != 0 ||
        posix_spawn(&pid, self, &actions, NULL, argv, environ) != 0) {
        bench_die("cannot start a host: %s", strerror(errno));
    }
    posix_spawn_file_actions_destroy(&actions);
    close(say[1]);
    if (read(say[0], &byte, 1) != 1) {
        bench_die("the host did not begin");
    }
    struct family family;
    struct round round;
    find_family(pid, &family);
    const uint64_t start = bench_now_ns();
    kill(pid, SIGKILL);
    for (size_t i = 0; options->warden && i < family.count; i++) {
        if (strcmp(family.names[i], "bh-warden") == 0) {
            (void)pidfd_send_signal(family.fds[i], SIGKILL, NULL, 0);
        }
    }
    await_next(n);
    round.next_ns = bench_now_ns() - start;
    round.gone_ns = await_family(&family) - start;
    for (size_t i = 0; options->each && i < family.count; i++) {
        printf("  %-6d %-16s %8.1f ms\n", (int)family.pids[i], family.names[i],
               (double)(family.ended_ns[i] - start) / 1e6);
    }
    waitpid(pid, NULL, 0);
    close(say[0]);
    return round;
}

static void close_side(struct side *side) {
    bh_buffer_release(side->data);
    bh_kernel_release(side->kernel);
    bh_stream_release(side->stream);
    bh_context_destroy(side->context);
}

/* Here gone_ns is when its stream has had a good result again. */
static struct round kill_a_worker(const struct options *options, const struct neighbour *n,
                                  const uint32_t grid[2]) {
    struct side side;
    struct round round;
    bh_event *event = begin_hang(options, &side, grid[0], grid[1]);
    const uint64_t start = bench_now_ns();
    kill(bh_stream_worker_pid(side.stream), SIGKILL);
    await_next(n);
    round.next_ns = bench_now_ns() - start;
    const bh_status status = bh_event_wait(event, BENCH_TIMEOUT_NS);
    if (status != BH_WORKER_SIGNAL && status != BH_LOOP_LIMIT) { /* that driver ended it */
        bench_die("the killed worker's event: %s", bh_status_name(status));
    }
    if (options->each) {
        printf("  poisoned after %.1f ms\n", (double)(bench_now_ns() - start) / 1e6);
    }
    bh_event_release(event);
    set_word(&side, GO);
    run_once(&side);
    round.gone_ns = bench_now_ns() - start;
    close_side(&side);
    return round;
}

/* Returns whether the bounds are kept. */
static bool measure(const struct options *options, const struct neighbour *n,
                    const uint32_t grid[2]) {
    uint64_t next[MOST_ROUND], gone[MOST_ROUND];
    for (unsigned i = 0; i < options->rounds; i++) {
        const struct round round =
            options->workers ? kill_a_worker(options, n, grid) : kill_a_host(options, n, grid);
        next[i] = round.next_ns;
        gone[i] = round.gone_ns;
    }
    const double next_p50 = (double)bench_quantile(next, options->rounds, 500) / 1e6;
    const double next_max = (double)bench_quantile(next, options->rounds, 1000) / 1e6;
    const double gone_p50 = (double)bench_quantile(gone, options->rounds, 500) / 1e6;
    const bool stalled = next_max > options->stall_ms; /* so is the p50 where it is over */
    const bool late = gone_p50 > options->gone_ms;
    printf("%-11s %9u x %-4u %10.1f %8.1f %12.1f %8.1f", options->trusted ? "trusted" : "guarded",
           grid[0], grid[1], next_p50, next_max, gone_p50,
           (double)bench_quantile(gone, options->rounds, 1000) / 1e6);
    if (options->strict) {
        printf("  %s%s%s", stalled ? "neighbour over" : "", stalled && late ? ", " : "",
               late      ? "end over"
               : stalled ? ""
                         : "kept");
    }
    printf("\n");
    fflush(stdout);
    return !stalled && !late;
}

static const char usage[] =
    "Usage: bench-host-death [--device D] [--worker PATH] [--rounds N] [--trusted] [--warden]\n"
    "                        [--each] [--workers] [--starting] [--quick]\n"
    "                        [--strict [--stall MS] [--gone MS]]\n"
    "A host, or a worker, is killed while an endless kernel runs: how long does another program "
    "on\n"
    "the device wait, and when has the host's last process ended?\n"
    "  --device D     a selector, as `bulkhead devices` shows it\n"
    "  --worker PATH  the worker executable\n"
    "  --rounds N     how often (default 5)\n"
    "  --trusted      the kernel runs without the guard, so it cannot be stopped\n"
    "  --warden       kills the host's warden at the same time\n"
    "  --workers      kills a worker, not the host\n"
    "  --starting     does not wait for the host's spare worker and its sentinel\n"
    "  --each         prints when each process ends\n"
    "  --quick        one round: does it work\n"
    "  --strict       exit status 3 where a bound is missed; --stall and --gone set the bounds\n";

int main(int argc, char **argv) {
    struct options options = {.rounds = 5, .stall_ms = STALL_MS, .gone_ms = GONE_MS};
    bool quick = false;
    if (argc == 8 && strcmp(argv[1], "--host") == 0) {
        options.device = argv[4][0] != '\0' ? argv[4] : NULL;
        options.worker = argv[5][0] != '\0' ? argv[5] : NULL;
        options.trusted = argv[6][0] != '\0';
        options.starting = argv[7][0] != '\0';
        be_host(&options, (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]));
    }
    const struct bench_option accepted[] = {
        {"--device", .text = &options.device},
        {"--worker", .text = &options.worker},
        {"--rounds", .number = &options.rounds, .least = 1, .most = MOST_ROUND},
        {"--trusted", .flag = &options.trusted},
        {"--warden", .flag = &options.warden},
        {"--workers", .flag = &options.workers},
        {"--starting", .flag = &options.starting},
        {"--each", .flag = &options.each},
        {"--strict", .flag = &options.strict},
        {"--stall", .number = &options.stall_ms, .most = 1000000},
        {"--gone", .number = &options.gone_ms, .most = 1000000},
        {"--quick", .flag = &quick},
        {0}};
    bench_parse(argc, argv, accepted, usage);
    options.rounds = quick ? 1 : options.rounds;
    if (options.strict && (options.trusted || options.workers)) {
        bench_die("--strict: the bounds are for a killed host and a guarded kernel, without "
                  "--trusted and --workers");
    }
    static struct neighbour n;
    n.side = open_side(&options, "neighbour", BENCH_CODE[BENCH_COUNT].words,
                       BENCH_CODE[BENCH_COUNT].bytes, true);
    run_once(&n.side);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, &n) != 0) {
        bench_die("cannot start a thread");
    }
    if (options.workers) {
        printf(
            "ms from kill -9 of the worker  neighbour's next job    stream's next good result\n");
    } else {
        printf("ms from kill -9 of the host%s    neighbour's next job    last process gone\n",
               options.warden ? ", and its warden" : "");
    }
    printf("kernel              grid       p50      max          p50      max\n");
    if (options.strict) {
        printf("bound, ms                  %10u %8u %12u        -\n", options.stall_ms,
               options.stall_ms, options.gone_ms);
    }
    bool kept = true;
    static const uint32_t grids[][2] = {{1, 1}, {2000, 1}, {65535, 64}};
    for (size_t i = 0; i < (quick ? 2 : sizeof grids / sizeof grids[0]); i++) {
        kept &= measure(&options, &n, grids[i]);
    }
    atomic_store(&n.stop, true);
    pthread_join(thread, NULL);
    close_side(&n.side);
    return options.strict && !kept ? 3 : 0;
}
