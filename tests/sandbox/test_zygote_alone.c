/* The zygote's code alone, in a fork: the order of its start, and what it makes of each request. What it
 * calls of the sandbox, the driver and its children's code is written down, and fails when told to. */
#include "base/memfd.h"
#include "harness.h"
#include "ipc/fdpass.h"
#include "ipc/trace.h"
#include "worker/exit.h"
#include "worker/probe/probe.h"
#include "worker/probe/scout.h"
#include "worker/process/children.h"
#include "worker/process/device_holder.h"
#include "worker/process/oom_score.h"
#include "worker/process/worker.h"
#include "worker/sandbox/sandbox.h"
#include "worker/session/orphan.h"
#include "worker/title.h"
#include "worker/trace/run.h"
#include "worker/warden/zygote_start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 20000

int zygote_main(int argc, char **argv); /* its main */

/* Shared with the zygote and its children. */
static struct {
    char did[64]; /* a letter for each step of the start */
    char fails;   /* this one */
    char waits;   /* before this one, until |goes_on| */
    _Atomic bool goes_on;
    bool lingers; /* its driver, so it has device holders */
    bool no_holder, no_pipe, no_fork, no_pidfd, no_prober;
    _Atomic int pids[16]; /* of its children */
    _Atomic int count;
    _Atomic bool runs; /* a worker, of which this is known: */
    struct bhi_worker_config config;
    uint8_t token[BHI_TOKEN_BYTES]; /* that the last worker got */
    const uint8_t *token_at;
    bool token_left;       /* when the answer was sent */
    char scores[32];       /* OOM scores: raised, lowered */
    _Atomic char farewell; /* that the worker has read; '-': the end */
} *seen;

static bool is_zygote; /* this process */
static struct bhi_zygote_start *start;

/* -- what it calls ----------------------------------------------------------------------------- */

static int step(char what, struct bhi_error *failure) {
    seen->did[strlen(seen->did)] = what;
    WAIT_UNTIL(seen->waits != what || seen->goes_on, WAIT_MS);
    return seen->fails == what
               ? BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, (char[]){what, 0}, .sys_errno = EXDEV)
               : 0;
}

static struct bhi_driver_info info = {.name = "pretended"};

int bhi_sandbox_namespaces_fini(struct bhi_error *failure) {
    return step('N', failure);
}
void bhi_oom_score_open(struct bhi_oom_score *score) {
    (void)score;
    step('O', NULL);
}
int bhi_driver_pick(struct bhi_driver *driver, const char *name, struct bhi_error *failure) {
    BHT_STR_EQ(name, "wanted");
    driver->info = &info;
    snprintf(driver->library, sizeof driver->library, "/its/library");
    return step('P', failure);
}
int bhi_driver_load(struct bhi_driver *driver, struct bhi_error *failure) {
    (void)driver;
    return step('L', failure);
}
void bhi_namespaces_read(struct bhi_namespaces *out) {
    (void)out;
    step('n', NULL);
}
int bhi_sandbox_root_begin(const char *folder, int *out_tree, struct bhi_error *failure) {
    BHT_STR_EQ(folder, "/its/folder");
    *out_tree = 77;
    return step('b', failure);
}
int bhi_sandbox_ids_take(const struct bhi_sandbox_ids *ids, struct bhi_error *failure) {
    (void)ids;
    return step('i', failure);
}
int bhi_sandbox_proc(int *out_proc, int *out_error, struct bhi_error *failure) {
    *out_proc = open("/", O_PATH | O_CLOEXEC);
    *out_error = EPERM;
    return step('p', failure);
}
int bhi_sandbox_root(const struct bhi_driver *driver, int tree, struct bhi_error *failure) {
    BHT_TRUE(driver->info == &info && tree == 77);
    return step('r', failure);
}
int bhi_sandbox_not_dumpable(struct bhi_error *failure) {
    return step('d', failure);
}
void bhi_scout(const struct bhi_probe_context *context, struct bhi_scouted *out) {
    BHT_TRUE(context->driver->info == &info && context->nodes == &out->nodes);
    BHT_TRUE(memcmp(&context->outside, &start->outside, sizeof context->outside) == 0);
    BHT_TRUE(memcmp(&context->warden, &start->warden, sizeof context->warden) == 0);
    BHT_EQ(context->user, 4321);
    step('s', NULL);
}
int bhi_orphan_prepare(int go, unsigned limit_ms, struct bhi_error *failure) {
    BHT_EQ(go, BHI_ZYGOTE_GO);
    BHT_EQ(limit_ms, 2 * BHI_FAREWELL_MS);
    return step('o', failure);
}
void bhi_title_init(int argc, char **argv) {
    (void)argc, (void)argv;
}
void bhi_title_set(const char *comm, const char *title) {
    BHT_STR_EQ(comm, "bh-zygote");
    (void)title;
}

BHT_WRAP(int, bhi_spin_prepare, void) {
    step('w', NULL);
    return __real_bhi_spin_prepare();
}

BHT_WRAP(int, prctl, int option, unsigned long value) {
    if (is_zygote) {
        BHT_TRUE(option == PR_SET_PDEATHSIG && value == SIGKILL);
        step('D', NULL);
    }
    return __real_prctl(option, value);
}

BHT_WRAP(int, setpriority, int which, id_t who, int nice) {
    step('+', NULL);
    return __real_setpriority(which, who, nice);
}

BHT_WRAP(int, madvise, void *page, size_t bytes, int advice) {
    if (is_zygote && advice == MADV_DONTFORK) {
        BHT_EQ(bytes, sizeof(struct bhi_zygote_start));
        errno = EXDEV;
        return step('m', &(struct bhi_error){0}) ? -1 : __real_madvise(page, bytes, advice);
    }
    return __real_madvise(page, bytes, advice);
}

static pid_t child(void);

BHT_WRAP(pid_t, fork, void) {
    errno = ENOMEM;
    return !is_zygote ? __real_fork() : seen->no_fork ? -1 : child();
}

static pid_t child(void) {
    const pid_t pid = __real_fork();
    if (pid == 0) {
        is_zygote = false;
    } else if (pid > 0) {
        seen->pids[seen->count++] = pid;
    }
    return pid;
}

BHT_WRAP(int, pipe2, int *fds, int flags) {
    errno = ENFILE;
    return is_zygote && seen->no_pipe ? -1 : __real_pipe2(fds, flags);
}

BHT_WRAP(int, pidfd_open, pid_t pid, unsigned flags) {
    errno = EMFILE;
    return is_zygote && seen->no_pidfd ? -1 : __real_pidfd_open(pid, flags);
}

BHT_WRAP(int, bhi_fdpass_send_message, int socket, const struct bhi_message *message,
         const int *fds, size_t count) {
    if (is_zygote && message->type == BHI_MSG_SPAWNED && seen->token_at) {
        static const uint8_t none[BHI_TOKEN_BYTES];
        seen->token_left = memcmp(seen->token_at, none, sizeof none) != 0;
    }
    return __real_bhi_fdpass_send_message(socket, message, fds, count);
}

static _Noreturn void sleep_on(void) {
    for (;;) {
        pause();
    }
}

pid_t bhi_device_holder_start(int socket) {
    BHT_GE(fcntl(socket, F_GETFD), 0);
    const pid_t pid = seen->no_holder ? -EAGAIN : child();
    if (pid == 0) {
        sleep_on();
    }
    return pid;
}

_Noreturn void bhi_worker_run(struct bhi_worker_config *config) {
    seen->config = *config;
    memcpy(seen->token, config->spawn->token, sizeof seen->token);
    seen->token_at = config->spawn->token;
    BHT_TRUE(config->driver->info == &info && config->scouted->nodes.count == 0);
    seen->runs = true;
    char byte = '-';
    /* It keeps no other end of its pipe, as a worker does not. */
    if (config->farewell >= 0 && dup2(config->farewell, 3) == 3 && close_range(4, ~0u, 0) == 0 &&
        read(3, &byte, 1) >= 0) {
        seen->farewell = byte;
        _exit(0);
    }
    sleep_on();
}

static struct bhi_probe_report *no_report;

static pid_t start_prober(struct bhi_probe_report **out_report) {
    *out_report = (void *)&no_report;
    const pid_t pid = seen->no_prober ? -ENOMEM : child();
    if (pid == 0) {
        sleep_on();
    }
    return pid;
}
pid_t bhi_probe_start(const struct bhi_probe_context *context, uint32_t layer,
                      struct bhi_probe_report **out_report) {
    BHT_TRUE(context->driver->info == &info && layer < 99);
    return start_prober(out_report);
}
pid_t bhi_trace_start(const struct bhi_probe_context *context, uint32_t index,
                      struct bhi_trace_page *page, struct bhi_probe_report **out_report) {
    BHT_TRUE(context->driver->info == &info && page && index == 3);
    return start_prober(out_report);
}
void bhi_probe_finish(struct bhi_probe_report *report, uint32_t layer, bool timed_out,
                      struct bhi_msg_probed *out) {
    (void)report;
    out->layer = layer;
    out->result = timed_out ? BHI_PROBE_BROKEN : BHI_PROBE_HOLDS;
}
void bhi_oom_score_raise(const struct bhi_oom_score *score) {
    (void)score;
    seen->scores[strlen(seen->scores)] = '+';
}
void bhi_oom_score_restore(const struct bhi_oom_score *score) {
    (void)score;
    seen->scores[strlen(seen->scores)] = '-';
}

/* -- the zygote -------------------------------------------------------------------------------- */

static pid_t zygote;
static int host, go; /* our end of its socket; the warden's end of the pipe */

static void launch(void) {
    int pair[2], pipe_ends[2];
    const int page = bhi_memfd_create("page", sizeof *start, 0);
    start = mmap(NULL, sizeof *start, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    BHT_TRUE(start != MAP_FAILED);
    start->bytes = sizeof *start;
    start->layers = 4;
    memset(&start->outside, 'o', sizeof start->outside);
    memset(&start->warden, 'w', sizeof start->warden);
    start->ids.user = 4321;
    snprintf(start->start.driver, sizeof start->start.driver, "wanted");
    snprintf(start->start.runtime_dir, sizeof start->start.runtime_dir, "/its/folder");
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    BHT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
    zygote = fork();
    if (zygote == 0) {
        const int mine[] = {pair[1], pipe_ends[0], page};
        int high[3];
        for (int i = 0; i < 3; i++) {
            high[i] = fcntl(mine[i], F_DUPFD_CLOEXEC, 100);
        }
        for (int i = 0; i < 3; i++) {
            BHT_EQ(dup3(high[i], BHI_ZYGOTE_SOCKET + i, O_CLOEXEC), BHI_ZYGOTE_SOCKET + i);
        }
        is_zygote = true;
        _exit(zygote_main(2, (char *[]){"bulkhead-worker", "zygote", NULL}));
    }
    close(page), close(pair[1]), close(pipe_ends[0]);
    host = pair[0];
    go = pipe_ends[1];
}

/* Its next message, of this type; *out_fds (or NULL) are the test's to close. */
static struct bhi_message next(enum bhi_message_type type, int *out_fds) {
    struct bhi_message message = {0};
    int fds[BHI_FDPASS_MAX];
    struct pollfd ready = {.fd = host, .events = POLLIN};
    BHT_EQ(poll(&ready, 1, WAIT_MS), 1);
    BHT_EQ(bhi_fdpass_recv_message(host, BHI_Z2S, &message, fds, MSG_DONTWAIT, NULL, 0), 1);
    BHT_EQ(message.type, type);
    for (unsigned i = 0; i < bhi_message_info(type)->fds; i++) {
        if (out_fds) {
            out_fds[i] = fds[i];
        } else {
            close(fds[i]);
        }
    }
    return message;
}

/* It ends by itself, with |code|; none of its children is left after this. */
static void expect_end(int code) {
    int status;
    BHT_EQ(waitpid(zygote, &status, 0), zygote);
    BHT_EQ(status, code << 8);
    for (int i = 0; i < seen->count; i++) {
        (void)kill(seen->pids[i], SIGKILL);
        while (waitpid(seen->pids[i], NULL, 0) > 0) {
        }
    }
    close(host), close(go);
    munmap(start, sizeof *start);
}

static void begin(void) {
    BHT_EQ(__real_prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BHT_TRUE(seen != MAP_FAILED);
}

static void finish(void) {
    munmap(seen, sizeof *seen);
}

BHT_AT_START(bht_around(begin, finish))

static void ask_probe(uint32_t layer) {
    const struct bhi_message message = {.type = BHI_MSG_PROBE, .probe = {.layer = layer}};
    BHT_EQ(bhi_fdpass_send_message(host, &message, NULL, 0), 0);
}

/* It has answered a first request. */
static void serve(void) {
    info.lingers = seen->lingers;
    launch();
    (void)next(BHI_MSG_ZYGOTE_READY, NULL);
    seen->no_prober = true;
    ask_probe(1);
    (void)next(BHI_MSG_PROBED, NULL);
    seen->no_prober = false;
}

/* -- its start --------------------------------------------------------------------------------- */

/* The ids clear the death signal, so it is asked for twice. The library comes before the emptied root,
 * and the scouts, which run it, after everything. */
#define STEPS "Dw+NOPLnbiDprdmso"

TEST(each_step_of_a_start) {
    int fds[2];
    launch();
    const struct bhi_message ready = next(BHI_MSG_ZYGOTE_READY, fds);
    BHT_STR_EQ(seen->did, STEPS);
    BHT_STR_EQ(ready.zygote_ready.driver, "pretended");
    BHT_STR_EQ(ready.zygote_ready.library, "/its/library");
    BHT_EQ(ready.zygote_ready.layers, 4 | BHI_LAYER_BIT(ROOT));
    BHT_EQ(ready.zygote_ready.proc_error, EPERM);
    BHT_STR_EQ(start->library, "/its/library");
    BHT_EQ(start->stage, BHI_ZYGOTE_SERVING);
    BHT_EQ(start->answered, 1);
    /* It is nicer than the host, and so are its workers. */
    BHT_EQ(getpriority(PRIO_PROCESS, (id_t)zygote), getpriority(PRIO_PROCESS, 0) + 1);
    struct pollfd ended = {.fd = fds[0], .events = POLLIN}; /* its pidfd */
    BHT_EQ(poll(&ended, 1, 0), 0);
    close(host);
    host = -1;
    BHT_EQ(poll(&ended, 1, WAIT_MS), 1);
    close(fds[0]), close(fds[1]);
    expect_end(BHI_EXIT_OK);
}

TEST(a_start_that_fails_says_where) {
    static const enum bhi_zygote_stages stages[] = {
        ['N'] = BHI_ZYGOTE_BEGUN,   ['P'] = BHI_ZYGOTE_BEGUN,   ['L'] = BHI_ZYGOTE_LOADING,
        ['b'] = BHI_ZYGOTE_ROOTING, ['i'] = BHI_ZYGOTE_ROOTING, ['p'] = BHI_ZYGOTE_ROOTING,
        ['r'] = BHI_ZYGOTE_ROOTING, ['d'] = BHI_ZYGOTE_ROOTING, ['m'] = BHI_ZYGOTE_ROOTING,
        ['o'] = BHI_ZYGOTE_SCOUTING};
    for (const char *fails = "NPLbiprdmo"; *fails; fails++) {
        memset(seen, 0, sizeof *seen);
        seen->fails = *fails;
        launch();
        const struct bhi_message message = next(BHI_MSG_ZYGOTE_FAILED, NULL);
        BHT_EQ(message.zygote_failed.error, EXDEV);
        BHT_STR_EQ(message.zygote_failed.name, *fails == 'm' ? "keep a page from the workers"
                                                             : seen->did + strlen(seen->did) - 1);
        BHT_EQ(strlen(seen->did), strchr(STEPS, *fails) + 1 - STEPS);
        BHT_EQ(start->stage, stages[(unsigned char)*fails]);
        BHT_EQ(start->answered, 1);
        expect_end(BHI_EXIT_START_FAILED);
    }
}

/* The warden dies while the signal for that is not asked for yet, or is cleared. */
TEST(a_warden_that_died_before_is_noticed) {
    for (const char *waits = "Di"; *waits; waits++) {
        memset(seen, 0, sizeof *seen);
        seen->waits = *waits;
        launch();
        WAIT_UNTIL(strchr(seen->did, *waits), WAIT_MS);
        close(go);
        go = -1;
        seen->goes_on = true;
        expect_end(BHI_EXIT_START_FAILED);
        BHT_STR_EQ(seen->did, *waits == 'D' ? "D" : "Dw+NOPLnbiD");
    }
}

/* -- requests ---------------------------------------------------------------------------------- */

static void ask_spawn(uint64_t worker, enum bhi_worker_kind kind) {
    struct bhi_message message = {.type = BHI_MSG_SPAWN};
    message.spawn.worker = worker;
    message.spawn.kind = kind;
    message.spawn.lane_bytes = message.spawn.progress_bytes = 8192;
    memset(message.spawn.token, 'T', sizeof message.spawn.token);
    int fds[BHI_SPAWN_FDS];
    for (int i = 0; i < BHI_SPAWN_FDS; i++) {
        fds[i] = eventfd(0, EFD_CLOEXEC);
    }
    BHT_EQ(bhi_fdpass_send_message(host, &message, fds, BHI_SPAWN_FDS), 0);
    for (int i = 0; i < BHI_SPAWN_FDS; i++) {
        close(fds[i]);
    }
}

static const struct {
    enum bhi_worker_kind kind;
    bool lingers, no_holder, no_pipe, no_fork, no_pidfd;
    int error;
    unsigned left; /* processes */
    const char *scores;
} spawns[] = {
    {BHI_WORKER_DEVICE, false, false, false, false, false, 0, 1, "+-"},
    {BHI_WORKER_DEVICE, true, false, false, false, false, 0, 2, "+-"},
    {BHI_WORKER_SENTINEL, true, false, false, false, false, 0, 1, "+-"},
    {BHI_WORKER_LOADER, true, false, false, false, false, 0, 1, "+-"},
    {BHI_WORKER_DEVICE, true, true, false, false, false, 0, 1, "+-"},
    {BHI_WORKER_DEVICE, true, false, true, false, false, ENFILE, 0, ""},
    {BHI_WORKER_LOADER, true, false, true, false, false, 0, 1, "+-"}, /* it needs no pipe */
    {BHI_WORKER_DEVICE, true, false, false, true, false, ENOMEM, 0, "+-"},
    {BHI_WORKER_DEVICE, true, false, false, false, true, EMFILE, 0, "+-"},
    {BHI_WORKER_DEVICE, false, false, false, false, true, EMFILE, 0, "+-"},
};

/* What was begun for a worker that cannot be forked, or not be watched, goes again: its holder and its
 * descriptors. No other process learns a worker's token. */
TEST(each_way_to_fork_a_worker) {
    for (size_t i = 0; i < BHT_COUNT(spawns); i++) {
        memset(seen, 0, sizeof *seen);
        seen->lingers = spawns[i].lingers;
        serve();
        const size_t before = bht_count_descriptors(zygote);
        const bool device = spawns[i].kind != BHI_WORKER_LOADER;
        const bool held = spawns[i].left == 2;
        seen->no_holder = spawns[i].no_holder;
        seen->no_pipe = spawns[i].no_pipe;
        seen->no_fork = spawns[i].no_fork;
        seen->no_pidfd = spawns[i].no_pidfd;
        ask_spawn(7, spawns[i].kind);
        if (spawns[i].error) {
            const struct bhi_message message = next(BHI_MSG_SPAWN_FAILED, NULL);
            BHT_EQ(message.spawn_failed.worker, 7);
            BHT_EQ(message.spawn_failed.error, spawns[i].error);
        } else {
            int pidfd;
            const struct bhi_message message = next(BHI_MSG_SPAWNED, &pidfd);
            BHT_EQ(message.spawned.worker, 7);
            BHT_EQ(message.spawned.held, held);
            WAIT_UNTIL(seen->runs, WAIT_MS);
            BHT_TRUE(seen->token[0] == 'T' && seen->token[BHI_TOKEN_BYTES - 1] == 'T');
            BHT_EQ(seen->config.layers, 4 | BHI_LAYER_BIT(ROOT));
            BHT_EQ(seen->config.farewell >= 0, device);
            BHT_EQ(seen->config.device_holder >= 0, held);
            close(pidfd);
            /* Once more: that number is taken. */
            ask_spawn(7, spawns[i].kind);
            BHT_EQ(next(BHI_MSG_SPAWN_FAILED, NULL).spawn_failed.error, EEXIST);
        }
        WAIT_UNTIL(bht_count_children(zygote) == spawns[i].left, WAIT_MS);
        BHT_STR_EQ(seen->scores, spawns[i].scores);
        BHT_EQ(bht_count_descriptors(zygote), before + (device && !spawns[i].error));
        close(host);
        host = -1;
        expect_end(BHI_EXIT_OK);
    }
}

/* The answer is sent when the token is gone from the zygote. */
TEST(no_token_stays_in_the_zygote) {
    serve();
    for (uint64_t worker = 1; worker <= 2; worker++) {
        ask_spawn(worker, BHI_WORKER_LOADER);
        (void)next(BHI_MSG_SPAWNED, NULL);
        WAIT_UNTIL(seen->runs, WAIT_MS);
        seen->runs = false;
    }
    BHT_TRUE(!seen->token_left); /* at the second, where the first one's was is known */
    close(host);
    host = -1;
    expect_end(BHI_EXIT_OK);
}

/* The host has no descriptor left in the zygote for what comes with a request. */
TEST(requests_without_room_for_their_descriptors) {
    serve();
    const struct rlimit few = {5, 5};
    BHT_EQ(prlimit(zygote, RLIMIT_NOFILE, &few, NULL), 0);
    ask_spawn(7, BHI_WORKER_LOADER);
    const struct bhi_message message = next(BHI_MSG_SPAWN_FAILED, NULL);
    BHT_EQ(message.spawn_failed.worker, 7);
    BHT_EQ(message.spawn_failed.error, EMFILE);
    const struct bhi_message trace = {.type = BHI_MSG_TRACE, .trace = {.bytes = 4096}};
    const int fd = eventfd(0, EFD_CLOEXEC);
    BHT_EQ(bhi_fdpass_send_message(host, &trace, &fd, 1), 0);
    close(fd);
    BHT_STR_EQ(next(BHI_MSG_TRACED, NULL).traced.text, "not traced: Too many open files");
    close(host);
    host = -1;
    expect_end(BHI_EXIT_OK);
}

static void ask_release(void) {
    const struct bhi_message release = {.type = BHI_MSG_RELEASE, .release.worker = 7};
    BHT_EQ(bhi_fdpass_send_message(host, &release, NULL, 0), 0);
}

/* It has handled what it was asked, and has told nothing else. */
static void expect_silence(void) {
    seen->no_prober = true;
    ask_probe(1);
    (void)next(BHI_MSG_PROBED, NULL);
}

static void expect_exited(bool held) {
    const struct bhi_message ended = next(BHI_MSG_EXITED, NULL);
    BHT_EQ(ended.exited.worker, 7);
    BHT_EQ(ended.exited.code, CLD_KILLED);
    BHT_EQ(ended.exited.status, SIGTERM);
    BHT_EQ(ended.exited.held, held);
}

/* A worker's end is reported twice if its device is held: at once, and when the host has let go of the device
 * and its holder has ended. Its place and its descriptors are free then. */
TEST(each_end_of_a_worker) {
    enum { PLAIN, HELD, LET_GO_BEFORE, WAYS };
    for (int way = PLAIN; way < WAYS; way++) {
        memset(seen, 0, sizeof *seen);
        seen->lingers = way != PLAIN;
        serve();
        const size_t before = bht_count_descriptors(zygote);
        for (int times = 0; times < 2; times++) {
            ask_spawn(7, BHI_WORKER_DEVICE);
            (void)next(BHI_MSG_SPAWNED, NULL);
            const pid_t worker = seen->pids[seen->count - 1];
            WAIT_UNTIL(seen->runs, WAIT_MS);
            if (way == LET_GO_BEFORE) {
                ask_release();
                expect_silence();
                BHT_EQ(bht_count_children(zygote), 2);
            }
            BHT_EQ(kill(worker, SIGTERM), 0); /* not what ends a holder */
            if (way != PLAIN) {               /* how it has ended is said at once (C3) */
                expect_exited(true);
            }
            if (way == HELD) {
                WAIT_UNTIL(bht_count_children(zygote) == 1, WAIT_MS);
                expect_silence();
                ask_release();
            }
            expect_exited(false);
            WAIT_UNTIL(bht_count_children(zygote) == 0, WAIT_MS);
            BHT_EQ(bht_count_descriptors(zygote), before);
            seen->runs = false;
        }
        close(host);
        host = -1;
        expect_end(BHI_EXIT_OK);
    }
}

static void ask_trace(int fd, uint64_t bytes) {
    const struct bhi_message message = {.type = BHI_MSG_TRACE,
                                        .trace = {.bytes = bytes, .device_index = 3}};
    BHT_EQ(bhi_fdpass_send_message(host, &message, &fd, 1), 0);
}

/* So many at once; what cannot be begun is answered at once, and leaves nothing. */
TEST(probes_and_traces) {
    const uint64_t bytes = sizeof(struct bhi_trace_page);
    const int fd = bhi_memfd_create("trace", bytes, 0), other = eventfd(0, EFD_CLOEXEC);
    serve();
    const size_t before = bht_count_descriptors(zygote);
    seen->no_prober = true;
    ask_probe(2);
    const struct bhi_message probed = next(BHI_MSG_PROBED, NULL);
    BHT_EQ(probed.probed.layer, 2);
    BHT_EQ(probed.probed.result, BHI_PROBE_BROKEN);
    BHT_STR_EQ(probed.probed.text, "not probed: cannot fork: Cannot allocate memory");
    ask_trace(fd, bytes);
    const struct bhi_message traced = next(BHI_MSG_TRACED, NULL);
    BHT_STR_EQ(traced.traced.text, "not traced: cannot fork: Cannot allocate memory");
    BHT_EQ(traced.traced.done, 0);
    seen->no_prober = false;
    ask_trace(fd, bytes - 1);
    BHT_STR_EQ(next(BHI_MSG_TRACED, NULL).traced.text, "not traced: out of memory");
    ask_trace(other, bytes);
    BHT_STR_EQ(next(BHI_MSG_TRACED, NULL).traced.text, "not traced: out of memory");
    ask_trace(fd, bytes);
    for (int i = 0; i < 7; i++) {
        ask_probe(2);
    }
    ask_probe(4);
    BHT_STR_EQ(next(BHI_MSG_PROBED, NULL).probed.text, "not probed: too many probes at once");
    ask_trace(fd, bytes);
    BHT_STR_EQ(next(BHI_MSG_TRACED, NULL).traced.text, "not traced: too many probes at once");
    BHT_EQ(seen->count, 8);
    BHT_EQ(bht_count_descriptors(zygote), before);
    WAIT_UNTIL(!bht_maps(zygote, "/memfd:trace"), WAIT_MS); /* workers would have it, too */
    BHT_EQ(kill(seen->pids[0], SIGKILL), 0);                /* that place is free then */
    BHT_EQ(next(BHI_MSG_TRACED, NULL).traced.done, 1);
    ask_probe(2);
    WAIT_UNTIL(seen->count == 9, WAIT_MS);
    close(fd), close(other), close(host);
    host = -1;
    expect_end(BHI_EXIT_OK);
}

/* -- the end ----------------------------------------------------------------------------------- */

/* E9. Whoever ends first, the workers with a device hear of it, and of the host's end by a byte; a zygote
 * that is told nonsense ends at once. */
TEST(each_end_of_a_zygote) {
    enum { HOST, HOST_BY_WARDEN, WARDEN, NONSENSE, WAYS };
    for (int way = HOST; way < WAYS; way++) {
        memset(seen, 0, sizeof *seen);
        serve();
        ask_spawn(7, BHI_WORKER_DEVICE);
        (void)next(BHI_MSG_SPAWNED, NULL);
        WAIT_UNTIL(seen->runs, WAIT_MS);
        if (way == NONSENSE) {
            struct bhi_message again = {.type = BHI_MSG_START};
            again.start = start->start;
            again.start.protocol = BHI_WIRE_VERSION;
            const int fds[] = {0, 0, 0};
            BHT_EQ(bhi_fdpass_send_message(host, &again, fds, 3), 0);
        } else if (way == WARDEN) {
            close(go);
            go = -1;
        } else {
            if (way == HOST) {
                kill(zygote, SIGSTOP); /* it sees both at once */
                close(host);
                host = -1;
            }
            BHT_EQ(write(go, "h", 1), 1);
            kill(zygote, SIGCONT);
        }
        if (way != NONSENSE) {
            WAIT_UNTIL(seen->farewell != 0, WAIT_MS);
            BHT_EQ(seen->farewell, way == WARDEN ? '-' : 'h');
        }
        expect_end(way == NONSENSE ? BHI_EXIT_SUPERVISOR : BHI_EXIT_OK);
    }
}
