/* bulkhead-worker: the zygote and the workers of one context. Executed by bulkhead-warden, inside the
 * namespaces of the sandbox; never by hand.
 *
 * ARCHITECTURE.md lists the processes. The order of reading is warden.c, zygote.c, worker.c,
 * session.c. worker/sandbox/ has one file for each mechanism; driver.c has what differs between
 * drivers. docs/sandbox.md explains order and reasons.
 *
 * The zygote: pid 1 of the sandbox's namespaces. It has the driver's library loaded, no thread, and
 * forks workers on request.
 *
 * State:
 *
 *   (cloned) ──ids mapped──▶ loading ──▶ rooting ──zygote_ready──▶ serving ──end of file──▶ exit
 *       │                       │           │                        │ spawn   → spawned(pidfd)
 *       └────────── zygote_failed, exit ────┘                        │          | spawn_failed
 *                                                                    │ probe   → probed
 *                                                                    └ SIGCHLD → exited, once each
 * If the driver has several devices, the zygote runs scouts (scout.h) between rooting and serving.
 *
 * When it ends, the kernel kills all its workers, because they are in its pid namespace. */
#include "base/fd.h"
#include "base/futex.h"
#include "base/memfd.h"
#include "base/text.h"
#include "ipc/fdpass.h"
#include "ipc/progress.h"
#include "worker/exit.h"
#include "worker/probe/probe.h"
#include "worker/probe/scout.h"
#include "worker/process/children.h"
#include "worker/process/device_holder.h"
#include "worker/process/oom_score.h"
#include "worker/process/worker.h"
#include "worker/session/orphan.h"
#include "worker/session/watchdog.h"
#include "worker/title.h"
#include "worker/trace/run.h"
#include "worker/warden/zygote_start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROBES   8
#define SAY_PAUSE_NS 1000000
#define THREAD_STACK ((size_t)2 << 20) /* what glibc takes where there is no limit */
#define NICER        1 /* one nice level: four fifths of the host's share of a busy processor */

static struct zygote {
    struct bhi_zygote_start *start; /* the page; workers do not have it */
    struct bhi_driver driver;
    struct bhi_probe_context probes;
    struct bhi_scouted scouted;
    struct bhi_oom_score oom_score;
    int proc, proc_error; /* for the host, until it has the descriptor: bhi_sandbox_proc */
    bool leaving;         /* the host has gone */
    bool farewell_said;   /* the workers know of the warden's pipe's end */
    struct bhi_children children;
} zygote;

/* -- talking to the host -------------------------------------------------------------------- */

static _Noreturn void leave(int code);

/* Waits while the host is alive and does not read. */
static void say(const struct bhi_message *message, const int *fds, size_t fd_count) {
    for (;;) {
        int r = bhi_fdpass_send_message(BHI_ZYGOTE_SOCKET, message, fds, fd_count);
        if (r == 0 || zygote.leaving) {
            return;
        }
        struct pollfd ready[2] = {{.fd = BHI_ZYGOTE_SOCKET, .events = POLLOUT},
                                  {.fd = BHI_ZYGOTE_GO, .events = POLLIN}};
        if (!bhi_fdpass_is_late(r) || (poll(ready, 2, -1) < 0 && errno != EINTR) ||
            ready[1].revents != 0) {
            leave(BHI_EXIT_SUPERVISOR);
        }
        if (r == -ETOOMANYREFS) { /* there is room */
            nanosleep(&(const struct timespec){.tv_nsec = SAY_PAUSE_NS}, NULL);
        }
    }
}

static void tell(const struct bhi_message *message) {
    say(message, NULL, 0);
}

static _Noreturn void fail(const struct bhi_error *failure) {
    struct bhi_message message;
    bhi_error_message(failure, &message);
    atomic_store(&zygote.start->answered, 1);
    tell(&message);
    _exit(BHI_EXIT_START_FAILED);
}

/* -- the end -------------------------------------------------------------------------------- */

/* Passes on what has come through the warden's pipe: the byte of a warden whose host has gone, or
 * its hang-up. */
static void pass_on_farewell(void) {
    struct pollfd go = {.fd = BHI_ZYGOTE_GO, .events = POLLIN};
    if (!zygote.farewell_said && poll(&go, 1, 0) == 1) {
        zygote.farewell_said = true;
        bhi_children_say_farewell(&zygote.children, (go.revents & POLLIN) != 0);
    }
}

/* The host has gone. Workers with a device are told, and stop what runs there before they exit;
 * if they were killed now, it would go on. Processes left after the wait die with us. */
static _Noreturn void leave(int code) {
    const uint64_t end_ns = bhi_deadline_ns(BHI_FAREWELL_MS * UINT64_C(1000000));
    zygote.leaving = true;
    pass_on_farewell();
    for (uint64_t now; bhi_children_let_go(&zygote.children) && (now = bhi_now_ns()) < end_ns;) {
        struct pollfd fds[] = {{.fd = zygote.children.signals, .events = POLLIN},
                               {.fd = zygote.farewell_said ? -1 : BHI_ZYGOTE_GO, .events = POLLIN}};
        if (poll(fds, 2, (int)((end_ns - now) / 1000000u) + 1) < 0 && errno != EINTR) {
            break;
        }
        pass_on_farewell(); /* the host's socket may end before the warden has noticed */
        bhi_children_ended(&zygote.children);
        bhi_children_reap(&zygote.children);
    }
    _exit(code);
}

/* -- requests ------------------------------------------------------------------------------- */

/* Returns the holder's pid; 0: this worker has none. *out_socket is the worker's end. */
static pid_t start_device_holder(const struct bhi_msg_spawn *spawn, int *out_socket) {
    int pair[2];
    if (!zygote.driver.info->lingers || spawn->kind != BHI_WORKER_DEVICE ||
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
    struct bhi_child *child = bhi_children_place(&zygote.children);
    if (!child) {
        return -EAGAIN;
    }
    if (bhi_children_has(&zygote.children, spawn->worker)) {
        return -EEXIST;
    }
    BHI_AUTO_FD device_socket = -1;
    int farewell[2] = {-1, -1};
    if (bhi_worker_has_device((enum bhi_worker_kind)spawn->kind) &&
        pipe2(farewell, O_CLOEXEC) != 0) {
        return -errno;
    }
    BHI_AUTO_FD farewell_read = farewell[0], farewell_write = farewell[1];
    const pid_t device_holder = start_device_holder(spawn, &device_socket);
    struct bhi_worker_config config = {.device_holder = device_socket,
                                       .farewell = farewell_read,
                                       .driver = &zygote.driver,
                                       .scouted = &zygote.scouted,
                                       .layers = zygote.probes.layers,
                                       .spawn = spawn};
    memcpy(config.fds, fds, sizeof config.fds);
    bhi_oom_score_raise(&zygote.oom_score);
    /* fork() and not the raw call, because drivers may have registered handlers. */
    pid_t pid = spawn->fails ? -1 : fork();
    if (pid == 0) {
        bhi_worker_run(&config);
    }
    const int fork_error = spawn->fails ? EAGAIN : errno;
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
    *child =
        (struct bhi_child){.pid = pid,
                           .device_holder = device_holder,
                           .worker = spawn->worker,
                           .farewell = bhi_fd_steal(&farewell_write),
                           .has_device = bhi_worker_has_device((enum bhi_worker_kind)spawn->kind)};
    *out_pidfd = pidfd;
    *out_held = device_holder > 0;
    return 0;
}

static void not_spawned(uint64_t worker, int error) {
    struct bhi_message message = {.type = BHI_MSG_SPAWN_FAILED};
    message.spawn_failed.worker = worker;
    message.spawn_failed.error = error;
    tell(&message);
}

static void spawn(struct bhi_msg_spawn *request, const int *fds) {
    int pidfd = -1;
    bool held = false;
    int r = try_spawn(request, fds, &pidfd, &held);
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
        not_spawned(request->worker, -r);
    }
}

static void refuse_probe(uint32_t layer, const char *text, int error) {
    struct bhi_message message = {.type = BHI_MSG_PROBED};
    message.probed.layer = layer;
    message.probed.result = BHI_PROBE_BROKEN;
    snprintf(message.probed.text, sizeof message.probed.text, "%s%s%s", text,
             error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
    tell(&message);
}

/* Returns a place for a prober, or NULL if there are too many. */
static struct bhi_child *prober(void) {
    return bhi_children_probers(&zygote.children) >= MAX_PROBES
               ? NULL
               : bhi_children_place(&zygote.children);
}

static void probe(uint32_t layer) {
    struct bhi_child *child = prober();
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
    *child = (struct bhi_child){.pid = pid,
                                .farewell = -1,
                                .layer = layer,
                                .deadline_ns = bhi_deadline_ns(BHI_PROBE_TIMEOUT_NS),
                                .report = report};
}

static void refuse_trace(const char *text, int error) {
    struct bhi_message message = {.type = BHI_MSG_TRACED};
    snprintf(message.traced.text, sizeof message.traced.text, "%s%s%s", text,
             error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
    tell(&message);
}

static void trace(const struct bhi_msg_trace *request, int fd) {
    struct bhi_child *child = prober();
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
        *child = (struct bhi_child){.pid = pid,
                                    .farewell = -1,
                                    .layer = BHI_TRACE_LAYER,
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
    int r =
        bhi_fdpass_recv_message(BHI_ZYGOTE_SOCKET, BHI_S2Z, &message, fds, MSG_DONTWAIT, NULL, 0);
    if (r == -EAGAIN) {
        return;
    }
    if (r == 0) {
        leave(BHI_EXIT_OK);
    }
    if (r == -EMFILE && message.type == BHI_MSG_SPAWN) {
        not_spawned(message.spawn.worker, EMFILE);
        return;
    }
    if (r == -EMFILE && message.type == BHI_MSG_TRACE) {
        refuse_trace("not traced", EMFILE);
        return;
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
        bhi_children_release(&zygote.children, message.release.worker);
        break;
    default: /* for example a second `start` */
        _exit(BHI_EXIT_SUPERVISOR);
    }
}

/* -- starting ------------------------------------------------------------------------------- */

/* Asks for SIGKILL when the warden dies. If it has died before, its end of the pipe is closed. */
static void follow_warden(void) {
    struct pollfd end = {.fd = BHI_ZYGOTE_GO, .events = 0};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || poll(&end, 1, 0) != 0) {
        _exit(BHI_EXIT_START_FAILED);
    }
}

/* The stack of a thread is as large as the limit of the stack, which may be too small for a compile. */
static void enlarge_thread_stacks(void) {
    pthread_attr_t defaults;
    size_t stack;
    if (pthread_getattr_default_np(&defaults) == 0) {
        if (pthread_attr_getstacksize(&defaults, &stack) == 0 && stack < THREAD_STACK &&
            pthread_attr_setstacksize(&defaults, THREAD_STACK) == 0) {
            (void)pthread_setattr_default_np(&defaults);
        }
        pthread_attr_destroy(&defaults);
    }
}

/* Maps what the warden has written. Nobody can be told of a page that is another build's. */
static void take_page(void) {
    struct bhi_zygote_start *page = MAP_FAILED;
    if (bhi_memfd_verify(BHI_ZYGOTE_PAGE, sizeof *page, 0) == 0) {
        page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, BHI_ZYGOTE_PAGE, 0);
    }
    if (page == MAP_FAILED || page->bytes != sizeof *page ||
        close_range(BHI_ZYGOTE_PAGE, ~0u, 0) != 0) {
        _exit(BHI_EXIT_START_FAILED);
    }
    zygote.start = page;
    atomic_store(&page->stage, BHI_ZYGOTE_BEGUN);
}

/* Makes the root and takes its ids. The driver's library is loaded and the runtime folder entered
 * with the host's rights; after that only what the new ids can reach is put into the root. */
static int settle(struct bhi_error *failure) {
    struct bhi_zygote_start *start = zygote.start;
    int tree = -1;
    int r = bhi_sandbox_root_begin(start->start.runtime_dir, &tree, failure);
    if (r != 0 || (r = bhi_sandbox_ids_take(&start->ids, failure)) != 0) {
        return r;
    }
    follow_warden(); /* because taking the ids clears the death signal */
    if ((r = bhi_sandbox_proc(&zygote.proc, &zygote.proc_error, failure)) != 0 ||
        (r = bhi_sandbox_root(&zygote.driver, tree, failure)) != 0) {
        return r;
    }
    return bhi_sandbox_not_dumpable(failure);
}

static int begin(struct bhi_error *failure) {
    struct bhi_zygote_start *start = zygote.start;
    struct utsname host;
    int r;
    uname(&host); /* reads the host's name before ours is set */
    snprintf(zygote.probes.host_name, sizeof zygote.probes.host_name, "%s", host.nodename);
    if ((r = bhi_sandbox_namespaces_fini(failure)) != 0) {
        return r;
    }
    bhi_oom_score_open(&zygote.oom_score);
    /* The library comes first, because it cannot be found in the emptied root. */
    if ((r = bhi_driver_pick(&zygote.driver, start->start.driver, failure)) != 0) {
        return r;
    }
    snprintf(start->library, sizeof start->library, "%s", zygote.driver.library);
    atomic_store(&start->stage, BHI_ZYGOTE_LOADING);
    if ((r = bhi_driver_load(&zygote.driver, failure)) != 0) {
        return r;
    }
    bhi_namespaces_read(&zygote.probes.inside);
    atomic_store(&start->stage, BHI_ZYGOTE_ROOTING);
    if ((r = settle(failure)) != 0) {
        return r;
    }
    /* Otherwise a worker could write into the page, and the warden would read that. */
    if (madvise(start, sizeof *start, MADV_DONTFORK) != 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "keep a page from the workers",
                         .sys_errno = errno);
    }
    zygote.probes.driver = &zygote.driver;
    zygote.probes.layers = start->layers | BHI_LAYER_BIT(ROOT);
    zygote.probes.outside = start->outside;
    zygote.probes.warden = start->warden;
    zygote.probes.user = start->ids.user;
    zygote.probes.nodes = &zygote.scouted.nodes;
    atomic_store(&start->stage, BHI_ZYGOTE_SCOUTING);
    bhi_scout(&zygote.probes, &zygote.scouted);
    r = bhi_children_init(&zygote.children, tell, failure);
    return r != 0 ? r : bhi_orphan_prepare(BHI_ZYGOTE_GO, 2 * BHI_FAREWELL_MS, failure);
}

static void announce(void) {
    const struct bhi_driver *driver = &zygote.driver;
    struct bhi_message message = {.type = BHI_MSG_ZYGOTE_READY};
    message.zygote_ready.layers = zygote.probes.layers;
    message.zygote_ready.proc_error = (uint32_t)zygote.proc_error;
    snprintf(message.zygote_ready.driver, sizeof message.zygote_ready.driver, "%s",
             driver->info->name);
    bhi_text_sanitise(message.zygote_ready.library, sizeof message.zygote_ready.library,
                      driver->library, strlen(driver->library));
    const int fds[] = {pidfd_open(getpid(), 0), zygote.proc};
    if (fds[0] < 0) {
        struct bhi_error failure;
        BHI_ERROR(&failure, BH_REASON_SYSTEM_STEP, "open a pidfd of the zygote",
                  .sys_errno = errno);
        fail(&failure);
    }
    atomic_store(&zygote.start->stage, BHI_ZYGOTE_SERVING);
    atomic_store(&zygote.start->answered, 1);
    say(&message, fds, 2);
    close(fds[0]);
    close(fds[1]);
}

/* Its descriptors are those of enum bhi_zygote_descriptors. Never returns; a process that no warden has
 * executed ends at once. */
static _Noreturn void run(void) {
    struct bhi_error failure = {.status = BH_OK};
    take_page();
    follow_warden();
    enlarge_thread_stacks();
    (void)bhi_spin_prepare(); /* for its workers: a filter of theirs may forbid it */
    /* Workers inherit the nice level and cannot lower it. At 19 no level below the host is left. */
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICER);
    if (begin(&failure) != 0) {
        fail(&failure);
    }
    announce();
    for (;;) {
        enum { HOST, CHILDREN, WARDEN, WATCHED };
        struct pollfd fds[WATCHED] = {
            [HOST] = {.fd = BHI_ZYGOTE_SOCKET, .events = POLLIN},
            [CHILDREN] = {.fd = zygote.children.signals, .events = POLLIN},
            [WARDEN] = {.fd = BHI_ZYGOTE_GO, .events = POLLIN}};
        if (poll(fds, WATCHED, bhi_children_timeout(&zygote.children)) < 0 && errno != EINTR) {
            _exit(BHI_EXIT_START_FAILED);
        }
        if (fds[WARDEN].revents != 0) {
            leave(BHI_EXIT_OK);
        }
        if (fds[CHILDREN].revents != 0) {
            bhi_children_ended(&zygote.children);
        }
        if (fds[HOST].revents != 0) {
            serve();
        }
        if (zygote.children.reap_ns <= bhi_now_ns()) {
            bhi_children_reap(&zygote.children);
        }
    }
}

/* -- the command line ----------------------------------------------------------------------- */

static const char help[] =
    "bulkhead-worker runs GPU kernels for a program that uses libbulkhead.\n"
    "\n"
    "It is executed by bulkhead-warden, inside the sandbox:\n"
    "    bulkhead-worker zygote    loads the driver, and forks the processes that run kernels\n"
    "There is nothing to be done with it by hand. To run a kernel: bulkhead run --help.\n"
    "To see what its sandbox does on this machine: bulkhead doctor.\n";

int main(int argc, char **argv) {
    /* The dots make room for the titles of processes that are forked from here (title.h). */
    const bool mode = argc == 2 || (argc == 3 && argv[2][strspn(argv[2], ".")] == '\0');
    if (mode && strcmp(argv[1], "zygote") == 0) {
        bhi_title_init(argc, argv);
        bhi_title_set("bh-zygote", "zygote");
        run();
    }
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("bulkhead-worker " BHI_VERSION);
        return 0;
    }
    fprintf(stderr,
            "bulkhead-worker: it is started by bulkhead-warden; see bulkhead-worker --help\n");
    return 2;
}
