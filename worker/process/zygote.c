#include "worker/process/zygote.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/memfd.h"
#include "base/text.h"
#include "ipc/fdpass.h"
#include "ipc/progress.h"
#include "worker/exit.h"
#include "worker/faults/faults.h"
#include "worker/probe/probe.h"
#include "worker/probe/scout.h"
#include "worker/process/device_holder.h"
#include "worker/process/oom_score.h"
#include "worker/process/worker.h"
#include "worker/session/orphan.h"
#include "worker/session/watchdog.h"
#include "worker/title.h"
#include "worker/trace/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CHILDREN 4096
#define MAX_PROBES   8
#define SAY_PAUSE_NS 1000000
#define REAP_NS      (20ull * 1000000) /* from a death to its clearing up */
#define NICER        1 /* one nice level: four fifths of the host's share of a busy processor */
#define TRACE_LAYER  UINT32_MAX /* a tracer, which is a prober of no layer */

/* A child that the host wants to hear of: a worker, or a prober (report is not NULL). */
struct child {
    pid_t pid; /* 0: free */
    /* Keeps its device open (device_holder.h); 0: none. When the worker has ended, this child
     * stands for both: |pid| is the holder's, and |ended| says how the worker ended. */
    pid_t device_holder;
    siginfo_t ended; /* si_pid is 0: it has not */
    bool released;   /* the holder may end with the worker */
    uint32_t layer;
    uint64_t worker;
    uint64_t deadline_ns;
    bool killed;
    int holder;      /* write end of the pipe of its memory holder; -1: none */
    bool has_device; /* it sees the host's end itself, and then exits */
    struct bhi_probe_report *report;
};

static struct zygote {
    struct bhi_zygote_config *config;
    struct bhi_probe_context probes;
    struct bhi_scouted scouted;
    int signals; /* signalfd for SIGCHLD */
    unsigned spawned, sentinels;
    struct bhi_oom_score oom_score;
    bool leaving;     /* the host has gone */
    uint64_t reap_ns; /* when the dead are reaped; BHI_FOREVER: there are none */
    struct child children[MAX_CHILDREN];
} zygote;

/* -- talking to the host -------------------------------------------------------------------- */

static _Noreturn void leave(int code);

/* Waits while the host is alive and does not read. */
static void say(const struct bhi_message *message, const int *fds, size_t fd_count) {
    for (;;) {
        int r = BHI_FAULT_FAILS("say")
                    ? -EPIPE
                    : bhi_fdpass_send_message(zygote.config->socket, message, fds, fd_count);
        if (r == 0 || zygote.leaving) {
            return;
        }
        struct pollfd ready[2] = {{.fd = zygote.config->socket, .events = POLLOUT},
                                  {.fd = zygote.config->go, .events = 0}};
        if (!bhi_fdpass_is_late(r) || (poll(ready, 2, -1) < 0 && errno != EINTR) ||
            ready[1].revents != 0) {
            leave(BHI_EXIT_SUPERVISOR);
        }
        if (r == -ETOOMANYREFS) { /* there is room */
            nanosleep(&(const struct timespec){.tv_nsec = SAY_PAUSE_NS}, NULL);
        }
    }
}

static _Noreturn void fail(const struct bhi_error *failure) {
    struct bhi_message message = {.type = BHI_MSG_ZYGOTE_FAILED};
    message.zygote_failed.status = (uint32_t)failure->status;
    message.zygote_failed.error = failure->sys_errno;
    bhi_text_sanitise(message.zygote_failed.text, sizeof message.zygote_failed.text, failure->text,
                      strlen(failure->text));
    atomic_store(&zygote.config->stage->answered, 1);
    say(&message, NULL, 0);
    _exit(BHI_EXIT_START_FAILED);
}

/* -- children ------------------------------------------------------------------------------- */

static struct child *free_child(void) {
    for (size_t i = 0; i < MAX_CHILDREN; i++) {
        if (zygote.children[i].pid == 0) {
            return &zygote.children[i];
        }
    }
    return NULL;
}

static bool worker_exists(uint64_t id) {
    for (size_t i = 0; i < MAX_CHILDREN; i++) {
        if (zygote.children[i].pid != 0 && !zygote.children[i].report &&
            zygote.children[i].worker == id) {
            return true;
        }
    }
    return false;
}

static void child_ended(struct child *child, const siginfo_t *info) {
    struct bhi_message message = {0};
    if (child->report && child->layer == TRACE_LAYER) {
        struct bhi_msg_probed probed = {0};
        bhi_probe_finish(child->report, 0, child->killed, &probed);
        message.type = BHI_MSG_TRACED;
        message.traced.done = probed.result == BHI_PROBE_HOLDS;
        memcpy(message.traced.text, probed.text, sizeof message.traced.text);
    } else if (child->report) {
        message.type = BHI_MSG_PROBED;
        bhi_probe_finish(child->report, child->layer, child->killed, &message.probed);
    } else {
        message.type = BHI_MSG_EXITED;
        message.exited.worker = child->worker;
        message.exited.code = info->si_code;
        message.exited.status = info->si_status;
        BHI_FAULT_POINT("exit_report");
    }
    const int holder = child->holder;
    *child = (struct child){0};
    say(&message, NULL, 0);
    if (holder >= 0) {
        close(holder);
    }
}

static struct child *find_child(pid_t pid) {
    for (size_t i = 0; i < MAX_CHILDREN; i++) {
        if (zygote.children[i].pid == pid) {
            return &zygote.children[i];
        }
    }
    return NULL;
}

/* -- device holders -------------------------------------------------------------------------- */

static void end_device_holder(const struct child *child) {
    if (child->ended.si_pid != 0 && child->released) {
        kill(child->pid, SIGKILL);
    }
}

/* A worker has ended whose device is still held. Its end is reported with the holder's. */
static void outlive(struct child *child, const siginfo_t *info) {
    child->ended = *info;
    child->pid = child->device_holder;
    child->device_holder = 0;
    child->has_device = false;
    end_device_holder(child);
}

/* A holder has ended before its worker: the worker's own end releases the device. */
static void forget_device_holder(pid_t pid) {
    for (size_t i = 0; i < MAX_CHILDREN; i++) {
        if (zygote.children[i].pid != 0 && zygote.children[i].device_holder == pid) {
            zygote.children[i].device_holder = 0;
        }
    }
}

static void release_device(uint64_t worker) {
    for (size_t i = 0; i < MAX_CHILDREN; i++) {
        struct child *child = &zygote.children[i];
        if (child->pid != 0 && !child->report && child->worker == worker) {
            child->released = true;
            end_device_holder(child);
        }
    }
}

/* Kills the memory holders of dead workers: stopped children that the zygote has inherited, and so
 * are not in its list. This is the last step after a death, because the kernel then frees the
 * worker's memory. */
static void end_holders(void) {
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG) != 0 || info.si_pid == 0) {
            return;
        }
        if (!find_child(info.si_pid)) {
            kill(info.si_pid, SIGKILL);
        }
    }
}

/* |child| has ended, and was not reaped. */
static void note_end(struct child *child, const siginfo_t *info) {
    if (child->device_holder != 0) {
        outlive(child, info);
    } else {
        child_ended(child, child->ended.si_pid != 0 ? &child->ended : info);
    }
}

/* Tells the host at once which children have ended, and has them reaped later: reaping waits, and
 * keeps a processor busy, until the last thread of a worker is through. Ending its memory holder
 * takes processor time, too. The worker that takes over needs both. */
static void on_signal(void) {
    struct signalfd_siginfo drained;
    while (read(zygote.signals, &drained, sizeof drained) == (ssize_t)sizeof drained) {
    }
    for (size_t i = 0; i < MAX_CHILDREN; i++) {
        struct child *child = &zygote.children[i];
        siginfo_t info = {0};
        if (child->pid != 0 &&
            waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid != 0) {
            note_end(child, &info);
        }
    }
    if (zygote.reap_ns == BHI_FOREVER) {
        zygote.reap_ns = bhi_deadline_ns(REAP_NS);
    }
}

/* Reaps all processes that have ended, also inherited ones. The host gets the report of a death
 * before the process is reaped. */
static void reap(void) {
    zygote.reap_ns = BHI_FOREVER;
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
            break;
        }
        struct child *child = find_child(info.si_pid);
        if (child) {
            note_end(child, &info);
        } else {
            forget_device_holder(info.si_pid);
        }
        BHI_FAULT_POINT("reap");
        if (waitid(P_PID, (id_t)info.si_pid, NULL, WEXITED | WNOHANG) != 0) {
            break;
        }
    }
    end_holders();
}

/* Kills probers whose time is up; their end is reported as a worker's. Returns how long poll() may
 * sleep. */
static int check_deadlines(void) {
    const uint64_t now = bhi_now_ns();
    uint64_t next = zygote.reap_ns;
    for (size_t i = 0; i < MAX_CHILDREN; i++) {
        struct child *child = &zygote.children[i];
        if (child->pid == 0 || !child->report || child->killed) {
            continue;
        }
        if (now >= child->deadline_ns) {
            child->killed = true;
            kill(child->pid, SIGKILL);
        } else if (child->deadline_ns < next) {
            next = child->deadline_ns;
        }
    }
    if (next == BHI_FOREVER) {
        return -1;
    }
    return next <= now ? 0 : (int)((next - now) / 1000000u) + 1;
}

/* -- the end -------------------------------------------------------------------------------- */

static unsigned patience_ms(void) {
#if BHI_FAULTS
    if (atomic_load(&zygote.config->stage->patient) != 0) {
        return BHI_PROBE_TIMEOUT_NS / 1000000u;
    }
#endif
    return BHI_FAREWELL_MS;
}

/* Kills children that have nothing to stop on a device. Returns whether others are left. Held
 * devices stay so until then: their release would take the lock that the others need to stop what
 * they run, and would wait for that itself. */
static bool let_go(void) {
    bool left = false;
    for (size_t i = 0; i < MAX_CHILDREN; i++) {
        const struct child *child = &zygote.children[i];
        if (child->pid != 0 && child->has_device) {
            left = true;
        } else if (child->pid != 0 && child->ended.si_pid == 0) {
            kill(child->pid, SIGKILL);
        }
    }
    return left;
}

/* The host has gone. Workers with a device see it, too, and stop what runs there before they exit;
 * if they were killed now, it would go on. Processes left after the wait die with us. */
static _Noreturn void leave(int code) {
    const uint64_t end_ns = bhi_deadline_ns(patience_ms() * 1000000ull);
    zygote.leaving = true;
    for (uint64_t now; let_go() && (now = bhi_now_ns()) < end_ns;) {
        struct pollfd children = {.fd = zygote.signals, .events = POLLIN};
        if (poll(&children, 1, (int)((end_ns - now) / 1000000u) + 1) < 0 && errno != EINTR) {
            break;
        }
        on_signal();
        reap();
    }
    _exit(code);
}

/* -- requests ------------------------------------------------------------------------------- */

/* Returns the holder's pid; 0: this worker has none. *out_socket is the worker's end. */
static pid_t start_device_holder(const struct bhi_msg_spawn *spawn, int *out_socket) {
    int pair[2];
    if (!zygote.config->driver.info->lingers || spawn->kind != BHI_WORKER_DEVICE ||
        bhi_fdpass_pair(pair) != 0) {
        return 0;
    }
    const pid_t pid = bhi_device_holder_start(pair[0]);
    close(pair[0]);
    if (pid < 0) {
        close(pair[1]);
        return 0;
    }
    *out_socket = pair[1];
    return pid;
}

static int try_spawn(struct bhi_msg_spawn *spawn, const int *fds, int *out_pidfd, bool *out_held) {
    struct child *child = free_child();
    if (!child) {
        return -EAGAIN;
    }
    if (worker_exists(spawn->worker)) {
        return -EEXIST;
    }
    int holder[2] = {-1, -1};
    if (zygote.config->driver.info->holder && spawn->kind == BHI_WORKER_DEVICE &&
        pipe2(holder, O_CLOEXEC) != 0) {
        return -errno;
    }
    BHI_AUTO_FD read_end = holder[0], write_end = holder[1], device_socket = -1;
    const pid_t device_holder = start_device_holder(spawn, &device_socket);
    struct bhi_worker_config config = {.holder = read_end,
                                       .device_holder = device_socket,
                                       .farewell = zygote.config->go,
                                       .driver = &zygote.config->driver,
                                       .scouted = &zygote.scouted,
                                       .layers = zygote.probes.layers,
                                       .ordinal = spawn->kind == BHI_WORKER_SENTINEL
                                                      ? BHI_SENTINEL_ORDINAL + zygote.sentinels++
                                                      : ++zygote.spawned,
                                       .spawn = spawn};
    memcpy(config.fds, fds, sizeof config.fds);
    BHI_FAULT_POINT("before_fork");
    bhi_oom_score_raise(&zygote.oom_score);
    /* fork() and not the raw call, because drivers may have registered handlers. */
    pid_t pid = fork();
    if (pid == 0) {
        bhi_worker_run(&config);
    }
    const int fork_error = errno;
    bhi_oom_score_restore(&zygote.oom_score);
    /* Only we reap the child, so the pid cannot have been reused. */
    const int pidfd = pid < 0 ? -1 : pidfd_open(pid, 0);
    const int error = pid < 0 ? fork_error : errno;
    if (pidfd < 0) {
        if (pid > 0) {
            kill(pid, SIGKILL); /* it is in no list, so its end is not reported */
        }
        if (device_holder > 0) {
            kill(device_holder, SIGKILL);
        }
        return -error;
    }
    *child = (struct child){.pid = pid,
                            .device_holder = device_holder,
                            .worker = spawn->worker,
                            .holder = bhi_fd_steal(&write_end),
                            .has_device = bhi_worker_has_device((enum bhi_worker_kind)spawn->kind)};
    *out_pidfd = pidfd;
    *out_held = device_holder > 0;
    return 0;
}

#if BHI_FAULTS
/* Waits, bounded, until the worker sleeps after its `ready`, which so comes before our message. */
static void be_late(int fd, uint64_t bytes) {
    struct bhi_progress progress;
    if (bhi_progress_map(&progress, fd, bytes) != 0) {
        return;
    }
    const uint64_t end = bhi_deadline_ns(BHI_PROBE_TIMEOUT_NS);
    while (atomic_load(&progress.header->sleeping) == 0 && bhi_now_ns() < end) {
        sched_yield();
    }
    bhi_progress_unmap(&progress);
}
#endif

static void spawn(struct bhi_msg_spawn *request, const int *fds) {
    int pidfd = -1;
    bool held = false;
    BHI_FAULT_POINT("fork_request");
    int r = try_spawn(request, fds, &pidfd, &held);
    BHI_FAULT_POINT("after_fork");
#if BHI_FAULTS
    if (r == 0 && BHI_FAULT_FAILS("spawned")) {
        be_late(fds[BHI_SPAWN_PROGRESS], request->progress_bytes);
    }
#endif
    explicit_bzero(request->token, sizeof request->token); /* or the next worker would inherit it */
    for (size_t i = 0; i < BHI_SPAWN_FDS; i++) {
        close(fds[i]);
    }
    struct bhi_message message = {0};
    if (r == 0) {
        message.type = BHI_MSG_SPAWNED;
        message.spawned.worker = request->worker;
        message.spawned.held = held;
        say(&message, &pidfd, 1);
        close(pidfd);
    } else {
        message.type = BHI_MSG_SPAWN_FAILED;
        message.spawn_failed.worker = request->worker;
        message.spawn_failed.error = -r;
        say(&message, NULL, 0);
    }
}

static void refuse_probe(uint32_t layer, const char *text, int error) {
    struct bhi_message message = {.type = BHI_MSG_PROBED};
    message.probed.layer = layer;
    message.probed.result = BHI_PROBE_BROKEN;
    snprintf(message.probed.text, sizeof message.probed.text, "%s%s%s", text,
             error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
    say(&message, NULL, 0);
}

/* Returns a place for a prober, or NULL if there are too many. */
static struct child *prober(void) {
    unsigned running = 0;
    for (size_t i = 0; i < MAX_CHILDREN; i++) {
        running += !!zygote.children[i].report;
    }
    return running >= MAX_PROBES ? NULL : free_child();
}

static void probe(uint32_t layer) {
    struct child *child = prober();
    if (!child) {
        refuse_probe(layer, "not probed: too many probes at once", 0);
        return;
    }
    struct bhi_probe_report *report = NULL;
    pid_t pid = bhi_probe_start(&zygote.probes, layer, &report);
    if (pid < 0) {
        refuse_probe(layer, "not probed: cannot fork", (int)-pid);
        return;
    }
    *child = (struct child){.pid = pid,
                            .holder = -1,
                            .layer = layer,
                            .deadline_ns = bhi_deadline_ns(BHI_PROBE_TIMEOUT_NS),
                            .report = report};
}

static void refuse_trace(const char *text, int error) {
    struct bhi_message message = {.type = BHI_MSG_TRACED};
    snprintf(message.traced.text, sizeof message.traced.text, "%s%s%s", text,
             error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
    say(&message, NULL, 0);
}

static void trace(const struct bhi_msg_trace *request, int fd) {
    struct child *child = prober();
    struct bhi_probe_report *report = NULL;
    struct bhi_trace_page *page = MAP_FAILED;
    if (request->bytes >= sizeof *page && bhi_memfd_verify(fd, request->bytes, 0) == 0) {
        page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    pid_t pid = -EAGAIN;
    if (page == MAP_FAILED) {
        refuse_trace("not traced: out of memory", 0);
    } else if (!child) {
        refuse_trace("not traced: too many probes at once", 0);
    } else if ((pid = bhi_trace_start(&zygote.probes, request->device_index, page, &report)) < 0) {
        refuse_trace("not traced: cannot fork", (int)-pid);
    } else {
        *child = (struct child){.pid = pid,
                                .holder = -1,
                                .layer = TRACE_LAYER,
                                .deadline_ns = bhi_deadline_ns(BHI_TRACE_TIMEOUT_NS),
                                .report = report};
    }
    if (page != MAP_FAILED) {
        munmap(page, sizeof *page); /* the tracer has its own mapping */
    }
}

/* Handles one request. After a bad request the zygote exits: it has no host any more that it could
 * serve. */
static void serve(void) {
    static struct bhi_message message;
    int fds[BHI_FDPASS_MAX];
    int r = bhi_fdpass_recv_message(zygote.config->socket, BHI_S2Z, &message, fds, MSG_DONTWAIT,
                                    NULL, 0);
    if (r == -EAGAIN) {
        return;
    }
    if (r == 0) {
        leave(BHI_EXIT_OK);
    }
    if (r < 0) {
        _exit(BHI_EXIT_SUPERVISOR);
    }
    switch (message.type) {
    case BHI_MSG_SPAWN:
        spawn(&message.spawn, fds);
        break;
    case BHI_MSG_PROBE:
        probe(message.probe.layer);
        break;
    case BHI_MSG_TRACE:
        trace(&message.trace, fds[0]);
        break;
    case BHI_MSG_RELEASE:
        release_device(message.release.worker);
        break;
    default: /* for example a second `start` */
        _exit(BHI_EXIT_SUPERVISOR);
    }
}

/* -- starting ------------------------------------------------------------------------------- */

/* Asks for SIGKILL when the warden dies. If it has died before, its end of the pipe is closed. */
static void follow_warden(int go) {
    struct pollfd end = {.fd = go, .events = 0};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || poll(&end, 1, 0) != 0) {
        _exit(BHI_EXIT_START_FAILED);
    }
}

/* Waits until the warden has mapped our ids: before that, our processes and files have no owner. */
static void await_warden(int go) {
    char byte;
    ssize_t n;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        _exit(BHI_EXIT_START_FAILED);
    }
    do {
        n = read(go, &byte, 1);
    } while (n < 0 && errno == EINTR);
    if (n != 1) {
        _exit(BHI_EXIT_START_FAILED);
    }
    follow_warden(go);
}

/* Makes the root and takes its ids. The driver's library is loaded and the runtime folder entered
 * with the host's rights; after that only what the new ids can reach is put into the root. */
static int settle(struct bhi_error *failure) {
    struct bhi_zygote_config *config = zygote.config;
    int tree = -1;
    int r = bhi_sandbox_root_begin(config->start.runtime_dir, &tree, failure);
    if (r != 0 || (r = bhi_sandbox_ids_take(&config->ids, failure)) != 0) {
        return r;
    }
    follow_warden(config->go); /* because taking the ids clears the death signal */
    if ((r = bhi_sandbox_root(&config->driver, tree, failure)) != 0) {
        return r;
    }
    return bhi_sandbox_not_dumpable(failure);
}

static int watch_children(struct bhi_error *failure) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    zygote.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (zygote.signals < 0) {
        return bhi_error_set_errno(failure, BH_SYSTEM, errno, "cannot create a signalfd");
    }
    return 0;
}

static int begin(struct bhi_error *failure) {
    struct bhi_zygote_config *config = zygote.config;
    struct utsname host;
    int r;
    uname(&host); /* reads the host's name before ours is set */
    snprintf(zygote.probes.host_name, sizeof zygote.probes.host_name, "%s", host.nodename);
    if ((r = bhi_sandbox_namespaces_fini(failure)) != 0) {
        return r;
    }
    bhi_oom_score_open(&zygote.oom_score);
#if BHI_FAULTS
    bhi_faults_init();
    atomic_store(&config->stage->patient, BHI_FAULT_FAILS("farewell") ? 1 : 0);
#endif
    /* The library comes first, because it cannot be found in the emptied root. */
    atomic_store(&config->stage->stage, BHI_ZYGOTE_LOADING);
    if ((r = bhi_driver_load(&config->driver, failure)) != 0) {
        return r;
    }
    bhi_namespaces_read(&zygote.probes.inside);
    atomic_store(&config->stage->stage, BHI_ZYGOTE_ROOTING);
    if ((r = settle(failure)) != 0) {
        return r;
    }
    /* Otherwise a worker could write into the page, and the warden would read that. */
    if (madvise(config->stage, sizeof *config->stage, MADV_DONTFORK) != 0) {
        return bhi_error_set_errno(failure, BH_SYSTEM, errno,
                                   "cannot keep a page from the workers");
    }
    zygote.probes.driver = &config->driver;
    zygote.probes.layers = config->layers | BHI_LAYER_BIT(ROOT);
    zygote.probes.outside = config->outside;
    zygote.probes.warden = config->warden;
    zygote.probes.user = config->ids.user;
    zygote.probes.nodes = &zygote.scouted.nodes;
    atomic_store(&config->stage->stage, BHI_ZYGOTE_SCOUTING);
    bhi_scout(&zygote.probes, &zygote.scouted);
    r = watch_children(failure);
    return r != 0 ? r : bhi_orphan_prepare(config->go, 2 * patience_ms(), failure);
}

static void announce(void) {
    const struct bhi_driver *driver = &zygote.config->driver;
    struct bhi_message message = {.type = BHI_MSG_ZYGOTE_READY};
    message.zygote_ready.layers = zygote.probes.layers;
    snprintf(message.zygote_ready.driver, sizeof message.zygote_ready.driver, "%s",
             driver->info->name);
    bhi_text_sanitise(message.zygote_ready.library, sizeof message.zygote_ready.library,
                      driver->library, strlen(driver->library));
    int self = pidfd_open(getpid(), 0);
    if (self < 0) {
        struct bhi_error failure;
        bhi_error_set_errno(&failure, BH_SYSTEM, errno, "cannot open a pidfd of the zygote");
        fail(&failure);
    }
    atomic_store(&zygote.config->stage->stage, BHI_ZYGOTE_SERVING);
    atomic_store(&zygote.config->stage->answered, 1);
    say(&message, &self, 1);
    close(self);
}

_Noreturn void bhi_zygote_run(struct bhi_zygote_config *config) {
    struct bhi_error failure = {.status = BH_OK};
    zygote.config = config;
    zygote.reap_ns = BHI_FOREVER;
    bhi_title_set("bh-zygote", "zygote");
    (void)bhi_spin_prepare(); /* for its workers: a filter of theirs may forbid it */
    await_warden(config->go);
    /* Workers inherit the nice level and cannot lower it. At 19 no level below the host is left. */
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICER);
    if (begin(&failure) != 0) {
        fail(&failure);
    }
    announce();
    for (;;) {
        enum { HOST, CHILDREN, WARDEN, WATCHED };
        struct pollfd fds[WATCHED] = {[HOST] = {.fd = config->socket, .events = POLLIN},
                                      [CHILDREN] = {.fd = zygote.signals, .events = POLLIN},
                                      [WARDEN] = {.fd = config->go, .events = 0}};
        if (poll(fds, WATCHED, check_deadlines()) < 0 && errno != EINTR) {
            _exit(BHI_EXIT_START_FAILED);
        }
        if (fds[WARDEN].revents != 0) {
            leave(BHI_EXIT_OK);
        }
        if (fds[CHILDREN].revents != 0) {
            on_signal();
        }
        if (fds[HOST].revents != 0) {
            serve();
        }
        if (zygote.reap_ns <= bhi_now_ns()) {
            reap();
        }
    }
}
