/* The helper processes, each one's code alone: what a zygote does about its children, a device holder,
 * a zygote without a warden, an opener. Each is a function in a fork; what they would have of a zygote or
 * of root is pretended. */
#include "base/fd.h"
#include "base/futex.h"
#include "harness.h"
#include "ipc/fdpass.h"
#include "worker/exit.h"
#include "worker/host.h"
#include "worker/opener/cache_files.h"
#include "worker/opener/opener.h"
#include "worker/process/alloc.h"
#include "worker/process/children.h"
#include "worker/process/device_holder.h"
#include "worker/session/orphan.h"
#include "worker/session/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 20000

static void *shared(size_t bytes) {
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BHT_TRUE(page != MAP_FAILED);
    return page;
}

static pid_t sleeper(void) {
    const pid_t pid = fork();
    BHT_GE(pid, 0);
    while (pid == 0) {
        pause();
    }
    return pid;
}

static bool has_ended(pid_t pid) {
    return strchr("XZ", bht_process_state(pid));
}

/* Kills a child, and leaves it to be reaped. Its SIGCHLD has come then. */
static void end(pid_t pid) {
    siginfo_t info;
    BHT_EQ(kill(pid, SIGKILL), 0);
    BHT_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

/* -- its memory ---------------------------------------------------------------------------------- */

#if !BHI_SANITIZED /* no interposers there */

/* What counts as refused makes the next crash one for want of memory. */
TEST(memory_is_refused_only_where_none_comes) {
    static struct bhi_progress_header header;
    const struct {
        size_t size;
        unsigned refused;
    } rows[] = {{16, 0}, {0, 0}, {SIZE_MAX / 2, 1}};
    bhi_alloc_watch(&header);
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        const volatile size_t size = rows[i].size;
        void *p = malloc(8);
        const uint64_t before = header.refused_allocations;
        void *moved = realloc(p, size); /* of no bytes: it is freed */
        BHT_EQ(header.refused_allocations - before, rows[i].refused);
        free(moved || !size ? moved : p);
    }
    bhi_alloc_watch(NULL);
}

#endif

/* -- the zygote's children --------------------------------------------------------------------- */

#define MINUTE UINT64_C(60000000000)

static struct bhi_children children;
static struct bhi_message told[8];
static size_t told_count;

static void tell(const struct bhi_message *message) {
    BHT_LT(told_count, BHT_COUNT(told));
    told[told_count++] = *message;
}

void bhi_probe_finish(struct bhi_probe_report *report, uint32_t layer, bool timed_out,
                      struct bhi_msg_probed *out) {
    out->layer = layer;
    out->result = timed_out ? BHI_PROBE_BROKEN : BHI_PROBE_HOLDS;
}

static struct bhi_probe_report no_report;

/* Of all tests: only some have children of a zygote. */
static void begin(void) {
    struct bhi_error failure;
    BHT_EQ(bhi_children_init(&children, tell, &failure), 0);
}

static void finish(void) {
    for (size_t i = 0; i < children.used; i++) {
        if (children.of[i].pid != 0) {
            end(children.of[i].pid);
        }
    }
    while (children.used > 0 && waitpid(-1, NULL, WNOHANG) > 0) {
    }
    close(children.signals);
}

BHT_AT_START(bht_around(begin, finish))

static struct bhi_child *add(struct bhi_child child) {
    struct bhi_child *place = bhi_children_place(&children);
    BHT_TRUE(place);
    child.pid = sleeper();
    child.farewell = child.farewell == 0 ? -1 : child.farewell;
    *place = child;
    return place;
}

static bool has_signal(void) {
    struct pollfd signals = {.fd = children.signals, .events = POLLIN};
    return poll(&signals, 1, 0) == 1;
}

/* What its loop does when a signal has come, and a little later. */
static void look(void) {
    WAIT_UNTIL(has_signal(), WAIT_MS);
    bhi_children_ended(&children);
    bhi_children_reap(&children);
}

static void expect_told(size_t number, uint64_t worker, int status, bool held) {
    BHT_EQ(told_count, number);
    BHT_EQ(told[number - 1].type, BHI_MSG_EXITED);
    BHT_EQ(told[number - 1].exited.worker, worker);
    BHT_EQ(told[number - 1].exited.code, CLD_KILLED);
    BHT_EQ(told[number - 1].exited.status, status);
    BHT_EQ(told[number - 1].exited.held, held);
    BHT_EQ(bhi_children_has(&children, worker), held);
}

static void expect_exit(size_t number, uint64_t worker, int status) {
    expect_told(number, worker, status, false);
}

/* A worker with its holder. */
static struct bhi_child *add_held(uint64_t worker) {
    return add(
        (struct bhi_child){.worker = worker, .device_holder = sleeper(), .has_device = true});
}

/* Its number may be another process's by the time its worker ends. */
TEST(a_device_holder_that_ended_first_is_forgotten) {
    struct bhi_child *child = add_held(7), *other = add_held(8);
    const pid_t holder = child->device_holder;
    end(holder);
    look();
    BHT_EQ(bht_process_state(holder), 'X');
    BHT_EQ(told_count, 0);
    BHT_EQ(child->device_holder, 0);
    BHT_TRUE(other->device_holder > 0);
    bhi_children_release(&children, 7);
    end(child->pid);
    look();
    expect_exit(1, 7, SIGKILL);
    end(other->device_holder);
}

/* How the worker ended is told at once (C3), and again when its device is released (decision 4). */
TEST(a_held_workers_end_is_told_before_and_after_the_release) {
    struct bhi_child *child = add_held(7);
    const pid_t holder = child->device_holder;
    const pid_t worker = child->pid;
    BHT_EQ(kill(worker, SIGTERM), 0);
    WAIT_UNTIL(has_ended(worker), WAIT_MS);
    look();
    BHT_EQ(bht_process_state(worker), 'X'); /* reaped, all the same */
    expect_told(1, 7, SIGTERM, true);
    BHT_TRUE(!has_ended(holder));
    BHT_TRUE(!bhi_children_let_go(&children)); /* the zygote does not stay for a holder */
    BHT_TRUE(!has_ended(holder));
    bhi_children_release(&children, 7);
    WAIT_UNTIL(has_ended(holder), WAIT_MS);
    look();
    expect_exit(2, 7, SIGTERM);
}

/* Told to let go before the worker has ended: it holds on, and goes with it. */
TEST(a_holder_that_is_released_before_goes_with_its_worker) {
    struct bhi_child *child = add_held(7);
    const pid_t holder = child->device_holder;
    bhi_children_release(&children, 7);
    BHT_TRUE(!has_ended(holder) && !has_ended(child->pid));
    end(child->pid);
    look();
    BHT_TRUE(told_count >= 1 && told[0].exited.held);
    WAIT_UNTIL(has_ended(holder), WAIT_MS);
    if (bhi_children_has(&children, 7)) { /* its holder ended after that look */
        look();
    }
    expect_exit(2, 7, SIGKILL);
}

/* Both are dead before the zygote looks; a holder is in the list only by its worker. */
TEST(a_holder_and_its_worker_may_end_at_once) {
    struct bhi_child *child = add_held(7);
    const pid_t holder = child->device_holder;
    end(holder);
    end(child->pid);
    look();
    expect_exit(2, 7, SIGKILL);
}

/* Their release takes the lock that the others need to stop what they run. */
TEST(when_the_host_has_gone_held_devices_stay_held) {
    struct bhi_child *runs = add((struct bhi_child){.worker = 1, .has_device = true});
    struct bhi_child *held =
        add((struct bhi_child){.worker = 2, .ended = {.si_pid = 1, .si_code = CLD_KILLED}});
    struct bhi_child *compiles = add((struct bhi_child){.worker = 3});
    struct bhi_child *probes =
        add((struct bhi_child){.report = &no_report, .deadline_ns = bhi_deadline_ns(MINUTE)});
    BHT_TRUE(bhi_children_let_go(&children));
    WAIT_UNTIL(has_ended(compiles->pid) && has_ended(probes->pid), WAIT_MS);
    BHT_TRUE(!has_ended(runs->pid) && !has_ended(held->pid));
    end(runs->pid);
    look();
    BHT_EQ(told_count, 3);
    BHT_TRUE(!bhi_children_let_go(&children)); /* the zygote ends now, and the holders with it */
    BHT_TRUE(!has_ended(held->pid));
}

/* Of each worker's own pipe: a byte if the host has gone, and only the hang-up if the warden has. */
TEST(each_worker_is_told_of_the_end_once) {
    for (int host_gone = 0; host_gone < 2; host_gone++) {
        int pipes[2][2];
        for (uint64_t i = 0; i < 2; i++) {
            BHT_EQ(pipe2(pipes[i], O_CLOEXEC), 0);
            add((struct bhi_child){.worker = i, .farewell = pipes[i][1], .has_device = true});
        }
        bhi_children_say_farewell(&children, host_gone);
        bhi_children_say_farewell(&children, true);
        for (size_t i = 0; i < 2; i++) {
            char byte[4];
            /* The sleepers that were forked in between have copies: the byte is all to be seen. */
            BHT_EQ(children.of[2 * (size_t)host_gone + i].farewell, -1);
            BHT_EQ(fcntl(pipes[i][0], F_SETFL, O_NONBLOCK), 0);
            BHT_EQ(read(pipes[i][0], byte, sizeof byte), host_gone ? 1 : -1);
            close(pipes[i][0]);
        }
    }
}

TEST(a_prober_is_killed_when_its_time_is_up) {
    BHT_EQ(bhi_children_timeout(&children), -1);
    add((struct bhi_child){.worker = 1}); /* a worker has no deadline */
    BHT_EQ(bhi_children_timeout(&children), -1);
    struct bhi_child *late = add((struct bhi_child){.report = &no_report, .layer = 3});
    struct bhi_child *early = add((struct bhi_child){
        .report = &no_report, .layer = 4, .deadline_ns = bhi_deadline_ns(MINUTE)});
    BHT_EQ(bhi_children_probers(&children), 2);
    const int timeout = bhi_children_timeout(&children);
    BHT_WITHIN(timeout, 1, MINUTE / 1000000 + 1);
    WAIT_UNTIL(has_ended(late->pid), WAIT_MS);
    BHT_TRUE(!has_ended(early->pid));
    bhi_children_ended(&children);
    BHT_EQ(told_count, 1);
    BHT_EQ(told[0].type, BHI_MSG_PROBED);
    BHT_EQ(told[0].probed.layer, 3);
    BHT_EQ(told[0].probed.result, BHI_PROBE_BROKEN);
    BHT_EQ(bhi_children_probers(&children), 1);
    BHT_LT(bhi_children_timeout(&children), 1000); /* there is one to be reaped */
    bhi_children_reap(&children);
    BHT_GT(bhi_children_timeout(&children), 0);
}

/* One signal may stand for several ends; and what a child has left is the zygote's, who is pid 1. */
TEST(no_end_is_missed_and_nothing_is_left) {
    BHT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    _Atomic pid_t *orphan = shared(sizeof *orphan);
    struct bhi_child *first = add((struct bhi_child){.worker = 1});
    struct bhi_child *second = add((struct bhi_child){.worker = 2});
    const pid_t parent = fork();
    if (parent == 0) {
        *orphan = sleeper();
        _exit(0);
    }
    WAIT_UNTIL(*orphan != 0 && has_ended(parent), WAIT_MS);
    const pid_t pids[] = {first->pid, second->pid, *orphan};
    for (size_t i = 0; i < 3; i++) {
        end(pids[i]);
    }
    bhi_children_ended(&children);
    BHT_EQ(told_count, 2);
    BHT_TRUE(!has_signal());
    BHT_EQ(bht_process_state(pids[0]), 'Z'); /* told, and not reaped yet (decision 4) */
    BHT_TRUE(children.reap_ns != BHI_FOREVER);
    bhi_children_reap(&children);
    BHT_EQ(bht_count_children(getpid()), 0);
    BHT_EQ(told_count, 2);
    BHT_TRUE(children.reap_ns == BHI_FOREVER);
    munmap(orphan, sizeof *orphan);
}

/* -- the device holder ------------------------------------------------------------------------- */

static bool pretend_pid_1;

/* Who has forked a holder is the zygote, which is that. */
BHT_WRAP(pid_t, getppid, void) {
    return pretend_pid_1 ? 1 : __real_getppid();
}

static struct bhi_driver_path paths[] = {{NULL, BHI_PATH_DEVICE}, {NULL, BHI_PATH_DEVICE}};
static const struct bhi_driver_info info = {.paths = paths};

static const char *folder;

/* Opens |name| in the folder |count| times. Returns the last descriptor. */
static int open_often(const char *name, size_t count) {
    char path[128];
    int fd = -1;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (size_t i = 0; i < count; i++) {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        BHT_GE(fd, 0);
    }
    return fd;
}

/* How many of its descriptors are of the file, or folder, whose path has |name|. */
static size_t has_of(pid_t pid, const char *name) {
    size_t count = 0;
    for (int fd = 0; fd < 256; fd++) {
        char path[64], to[256];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        const ssize_t length = readlink(path, to, sizeof to - 1);
        to[length < 0 ? 0 : length] = '\0';
        count += !!strstr(to, name);
    }
    return count;
}

/* Has a holder sent what there is of |files|. */
static pid_t hold(const struct bhi_device_files *files, int end) {
    int pair[2];
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    pretend_pid_1 = true;
    const pid_t pid = bhi_device_holder_start(pair[0]);
    BHT_GT(pid, 0);
    close(pair[0]);
    bhi_device_files_send(files, pair[1], end);
    BHT_TRUE(fcntl(pair[1], F_GETFD) < 0 && errno == EBADF);
    return pid;
}

/* All of its own device, whatever packets it takes; nothing else of those who forked it. */
static void expect_held(size_t count) {
    struct bhi_device_files files;
    struct bhi_nodes nodes = {.count = 2};
    char shared_path[128];
    snprintf(shared_path, sizeof shared_path, "%s/control", folder);
    snprintf(nodes.paths[0], sizeof nodes.paths[0], "%s/node", folder);
    snprintf(nodes.paths[1], sizeof nodes.paths[1], "%s/other", folder);
    paths[0].pattern = shared_path;
    open_often("control", 1);
    open_often("other", 2);
    const int last = open_often("node", count);
    bhi_device_files_list(&files, &info, nodes.paths[0], &nodes);
    const pid_t holder = hold(&files, last + 1);
    /* While it takes them, it has its own ones, too: their number alone may fit by chance. */
    WAIT_UNTIL(has_of(holder, "/node") == count && bht_count_descriptors(holder) == count + 1,
               WAIT_MS);
    BHT_EQ(has_of(holder, "/control"), 1);
    end(holder);
    BHT_EQ(waitpid(holder, NULL, 0), holder);
    /* Whose device it is is not known. */
    bhi_device_files_list(&files, &info, NULL, &nodes);
    const pid_t second = hold(&files, 256);
    WAIT_UNTIL(bht_count_descriptors(second) == count + 3, WAIT_MS);
    end(second);
    BHT_EQ(waitpid(second, NULL, 0), second);
    (void)close_range(3, ~0u, 0);
}

TEST(a_holder_has_its_device_and_nothing_else) {
    static const size_t counts[] = {1, BHI_FDPASS_MAX - 1, BHI_FDPASS_MAX, 2 * BHI_FDPASS_MAX + 3};
    folder = bht_folder();
    const pid_t pid = fork(); /* which closes all that it has */
    if (pid == 0) {
        for (size_t i = 0; i < BHT_COUNT(counts); i++) {
            expect_held(counts[i]);
        }
        _exit(0);
    }
    int status;
    BHT_EQ(waitpid(pid, &status, 0), pid);
    BHT_EQ(status, 0);
}

/* -- a zygote without a warden ----------------------------------------------------------------- */

struct orphan_page {
    _Atomic pid_t pid;
    _Atomic int looked; /* 1: no time limit runs, 2: one does */
};

static void be_zygote(struct orphan_page *page, int go, bool stops) {
    const struct rlimit bound = {60, 60}; /* of processor time, should it not end */
    struct bhi_error failure;
    if (setrlimit(RLIMIT_CPU, &bound) != 0 || bhi_orphan_prepare(go, 1, &failure) != 0) {
        _exit(1);
    }
    raise(SIGCONT); /* anybody's: the warden lives */
    struct itimerval limit;
    getitimer(ITIMER_REAL, &limit);
    page->looked = limit.it_value.tv_usec == 0 && limit.it_value.tv_sec == 0 ? 1 : 2;
    page->pid = getpid();
    if (stops) {
        raise(SIGSTOP);
    }
    for (;;) { /* it is busy with something else than the warden's pipe */
    }
}

/* Decision 1. It is ours when the warden is dead. */
static void expect_end_of_orphan(bool stops) {
    struct orphan_page *page = shared(sizeof *page);
    int go[2], status;
    BHT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    const pid_t warden = fork();
    if (warden == 0) {
        BHT_EQ(pipe2(go, O_CLOEXEC), 0);
        if (fork() == 0) {
            close(go[1]);
            be_zygote(page, go[0], stops);
        }
        for (;;) {
            pause();
        }
    }
    WAIT_UNTIL(page->pid != 0, WAIT_MS);
    BHT_EQ(page->looked, 1);
    WAIT_UNTIL(!stops || bht_process_state(page->pid) == 'T', WAIT_MS);
    end(warden);
    BHT_EQ(waitpid(warden, NULL, 0), warden);
    BHT_NE(bht_process_state(page->pid), 'T');
    WAIT_UNTIL(has_ended(page->pid), WAIT_MS);
    BHT_EQ(waitpid(page->pid, &status, 0), page->pid);
    BHT_EQ(WEXITSTATUS(status), BHI_EXIT_SUPERVISOR);
    munmap(page, sizeof *page);
}

TEST(a_zygote_ends_after_its_warden_though_busy_or_stopped) {
    expect_end_of_orphan(false);
    expect_end_of_orphan(true);
}

/* The warden died before it could say so by a signal. */
TEST(a_zygote_whose_warden_is_dead_already_has_a_time_limit) {
    int go[2];
    struct itimerval limit;
    struct bhi_error failure;
    BHT_EQ(pipe2(go, O_CLOEXEC), 0);
    close(go[1]);
    BHT_EQ(bhi_orphan_prepare(go[0], MINUTE / 1000000, &failure), 0);
    BHT_EQ(getitimer(ITIMER_REAL, &limit), 0);
    BHT_GT(limit.it_value.tv_sec, 0);
    bhi_orphan_forget(); /* as its children do */
    raise(SIGCONT);
    BHT_EQ(getitimer(ITIMER_REAL, &limit), 0);
    BHT_TRUE(limit.it_value.tv_sec == 0 && limit.it_value.tv_usec == 0);
    close(go[0]);
}

/* -- a worker's watchdog ----------------------------------------------------------------------- */

#define STOPPED 70 /* what runs was stopped: nothing reads its results any more */

void bhi_backend_abort(struct bhi_backend *backend, uint64_t seq) {}

void bhi_backend_abort_all(struct bhi_backend *backend) {
    _exit(STOPPED);
}

void bhi_sentinel_device_set_all(struct bhi_sentinel_device *sentinel) {
    _exit(STOPPED);
}

struct ending {
    bool says_so;      /* the warden, that the host has gone; else it was killed */
    bool busy;         /* something runs */
    int host_hangs_up; /* at which look the host's end of the side channel is closed; 0: never */
};

/* The host's end, which is closed at that look; in the watched process alone. */
static struct {
    int descriptor;
    _Atomic int looks_left;
} host_end;

BHT_WRAP(int, poll, struct pollfd *fds, nfds_t count, int timeout) {
    if (host_end.looks_left > 0 && count == 1 && fds->fd == BHI_FDPASS_DESCRIPTOR &&
        --host_end.looks_left == 0) {
        close(host_end.descriptor);
    }
    return __real_poll(fds, count, timeout);
}

_Noreturn static void be_watched(const struct ending *ending) {
    static struct bhi_lane_header header;
    static struct bhi_watchdog watchdog;
    const struct bhi_lane_view lane = {.header = &header};
    struct bhi_error error;
    int warden[2], host[2];
    if (pipe2(warden, O_CLOEXEC) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, host) != 0 ||
        dup2(host[0], BHI_FDPASS_DESCRIPTOR) < 0 ||
        bhi_watchdog_start(&watchdog, &lane, warden[0], &error) != 0) {
        _exit(1);
    }
    atomic_store(&watchdog.backend, (struct bhi_backend *)&header);
    atomic_store(&watchdog.busy, ending->busy);
    host_end.descriptor = host[1];
    host_end.looks_left = ending->host_hangs_up;
    if (ending->says_so && write(warden[1], "", 1) != 1) {
        _exit(1);
    }
    close(warden[1]);
    for (;;) {
        pause();
    }
}

/* Work is stopped when its host has gone, and not for the end of the warden alone: the host would take
 * that for a deadline. */
TEST(what_runs_is_stopped_when_the_host_has_gone) {
    static const struct {
        struct ending ending;
        int status;
    } rows[] = {
        {{.says_so = true}, STOPPED},
        {{.says_so = true, .busy = true}, STOPPED},
        {{.busy = true, .host_hangs_up = 1}, STOPPED},
        {{.busy = true, .host_hangs_up = 3}, STOPPED}, /* it goes on as long as the host lives */
        {{.says_so = false}, BHI_EXIT_SUPERVISOR},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        int status;
        const pid_t pid = fork();
        BHT_GE(pid, 0);
        if (pid == 0) {
            be_watched(&rows[i].ending);
        }
        BHT_EQ(waitpid(pid, &status, 0), pid);
        BHT_TRUE(WIFEXITED(status));
        BHT_EQ(WEXITSTATUS(status), rows[i].status);
    }
}

/* -- the opener -------------------------------------------------------------------------------- */

/* Of the thread, as the kernel has them; and what it refuses. */
static struct {
    bool user, group;
} refuses;
static _Thread_local int file_user, file_group;

BHT_WRAP(int, setfsuid, uid_t user) {
    const int before = file_user;
    file_user = user == (uid_t)-1 || refuses.user ? before : (int)user;
    return before;
}

BHT_WRAP(int, setfsgid, gid_t group) {
    const int before = file_group;
    file_group = group == (gid_t)-1 || refuses.group ? before : (int)group;
    return before;
}

/* What the opener's mounts do; of all processes. */
static struct {
    _Atomic bool hang;
    _Atomic int error; /* of fstat and fstatfs */
} *mounts;

BHT_WRAP(int, fstat, int fd, struct stat *out) {
    errno = mounts ? mounts->error : 0;
    return errno != 0 ? -1 : __real_fstat(fd, out);
}

/* In place of a cache: which it is, and whose. */
static int say_who(const struct bhi_cache_file *file, uint64_t *out_bytes, char *what,
                   size_t size) {
    while (mounts && mounts->hang) {
        bht_poll_pause();
    }
    *out_bytes = file->room;
    snprintf(what, size, "%d:%d %s %.3s", file_user, file_group, file->folder,
             (const char *)file->identity);
    return 0;
}

int bhi_cache_load(const struct bhi_cache_file *file, uint64_t *out_bytes, char *what,
                   size_t size) {
    return say_who(file, out_bytes, what, size);
}

int bhi_cache_store(const struct bhi_cache_file *file, uint64_t *out_bytes, char *what,
                    size_t size) {
    return say_who(file, out_bytes, what, size);
}

/* What is asked for: the path goes with it. */
static const char path_asked[] = "/dev/null";
static struct bhi_message
    wants_file = {.type = BHI_MSG_OPEN,
                  .open = {.named = 1, .path_bytes = 9, .user = 1001, .group = 1002}},
    wants_cache = {
        .type = BHI_MSG_CACHE_FILE,
        .cache_file = {
            .path_bytes = 9, .user = 1001, .group = 1002, .room = 4096, .identity = "own"}};

static void send_watch(int socket, pid_t host) {
    struct bhi_message message = {.type = BHI_MSG_WATCH};
    message.watch.protocol = BHI_WIRE_VERSION;
    const int pidfd = pidfd_open(host, 0);
    BHT_GE(pidfd, 0);
    BHT_EQ(bhi_fdpass_send_message(socket, &message, &pidfd, 1), 0);
    close(pidfd);
}

/* Hands it a socket that is to be closed. */
static void send_let_go(int socket) {
    const struct bhi_message message = {.type = BHI_MSG_LET_GO};
    int pair[2];
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    BHT_EQ(bhi_fdpass_send(pair[0], "file", 4, &socket, 1), 0);
    BHT_EQ(bhi_fdpass_send_message(socket, &message, &pair[1], 1), 0);
    close(pair[0]);
    close(pair[1]);
}

/* Returns the opener; *out_socket is the host's end. |host| 0: it is not told of one. */
static pid_t start_opener(int *out_socket, pid_t host) {
    int pair[2];
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        const int high = fcntl(pair[1], F_DUPFD, 10);
        dup2(high, BHI_HOST_SOCKET);
        _exit(bhi_opener_run());
    }
    close(pair[1]);
    *out_socket = pair[0];
    if (host != 0) {
        send_watch(pair[0], host);
    }
    return pid;
}

/* Sends a request. Returns where the answer comes. */
static int request(int socket, const struct bhi_message *message) {
    int pair[2];
    BHT_EQ(bhi_fdpass_pair(pair), 0);
    BHT_EQ(bhi_fdpass_send(pair[0], path_asked, sizeof path_asked - 1, NULL, 0), 0);
    const int second = open("/", O_PATH | O_CLOEXEC);
    BHT_EQ(bhi_fdpass_send_message(socket, message, (int[]){pair[1], second}, 2), 0);
    close(pair[1]);
    close(second);
    return pair[0];
}

static struct bhi_message answer(int from) {
    struct bhi_message message;
    int fds[BHI_FDPASS_MAX];
    for (int i = 0; i < 2; i++) {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        BHT_EQ(poll(&ready, 1, WAIT_MS * (int)bht_slowness()), 1);
        BHT_EQ(bhi_fdpass_recv_message(from, BHI_O2S, &message, fds, MSG_DONTWAIT, NULL, 0), 1);
        BHT_EQ(message.type == BHI_MSG_TAKEN, i == 0);
    }
    if (message.type == BHI_MSG_OPENED) {
        close(fds[0]);
    }
    close(from);
    return message;
}

static struct bhi_message ask(int socket, const struct bhi_message *message) {
    return answer(request(socket, message));
}

static void end_opener(pid_t pid, int socket) {
    int status;
    close(socket);
    WAIT_UNTIL(has_ended(pid), WAIT_MS);
    BHT_EQ(waitpid(pid, &status, 0), pid);
    BHT_EQ(status, 0);
}

/* A file is opened with both ids of the thread that asks, or not at all. */
TEST(an_opener_that_cannot_take_the_callers_ids_opens_nothing) {
    for (unsigned refused = 0; refused < 4; refused++) {
        const int error = refused != 0 ? EPERM : 0;
        int socket;
        refuses.user = refused & 1;
        refuses.group = refused & 2;
        const pid_t opener = start_opener(&socket, getpid());
        struct bhi_message answer = ask(socket, &wants_file);
        BHT_EQ(answer.type, error ? BHI_MSG_OPEN_FAILED : BHI_MSG_OPENED);
        BHT_TRUE(!error || answer.open_failed.error == error);
        for (uint32_t store = 0; store < 2; store++) {
            wants_cache.cache_file.store = store;
            answer = ask(socket, &wants_cache);
            BHT_EQ(answer.type, BHI_MSG_CACHE_DONE);
            BHT_EQ(answer.cache_done.error, error);
            BHT_STR_EQ(answer.cache_done.what, error ? "" : "1001:1002 /dev/null own");
            BHT_EQ(answer.cache_done.bytes, error ? 0 : 4096);
        }
        end_opener(opener, socket);
    }
}

/* More than it serves at a time. (While many hang: system_dead_mount.) */
TEST(an_opener_keeps_nothing_of_what_it_has_served) {
    int socket;
    const pid_t opener = start_opener(&socket, getpid());
    BHT_EQ(ask(socket, &wants_file).type, BHI_MSG_OPENED);
    WAIT_UNTIL(bht_count_descriptors(opener) == 5, WAIT_MS); /* its streams, the socket, the host */
    for (int i = 0; i < 300; i++) {
        wants_file.open.tenant = (uint64_t)i % 3;
        WAIT_UNTIL(ask(socket, &wants_file).type == BHI_MSG_OPENED, 4000);
        WAIT_UNTIL(ask(socket, &wants_cache).cache_done.error == 0, 4000);
        send_let_go(socket);
    }
    WAIT_UNTIL(bht_count_descriptors(opener) == 5, WAIT_MS);
    WAIT_UNTIL(bht_proc_number(opener, "status", "Threads:", 0) == 1, WAIT_MS);
    BHT_LT(bht_proc_lines(opener, "maps", "-"), 300); /* each stack has two */
    end_opener(opener, socket);
}

#define MOST_CACHES 8

/* Each request is answered, also those that cannot be served; and none counts for ever. */
TEST(an_opener_whose_mounts_hang_answers) {
    int socket, hanging[MOST_CACHES];
    mounts = shared(sizeof *mounts);
    const pid_t opener = start_opener(&socket, getpid());
    mounts->hang = true;
    for (int i = 0; i < MOST_CACHES; i++) {
        hanging[i] = request(socket, &wants_cache);
    }
    for (int i = 0; i < 2 * MOST_CACHES; i++) {
        BHT_EQ(ask(socket, &wants_cache).cache_done.error, EAGAIN);
    }
    BHT_EQ(ask(socket, &wants_file).type, BHI_MSG_OPENED);
    mounts->hang = false;
    for (int i = 0; i < MOST_CACHES; i++) {
        BHT_EQ(answer(hanging[i]).cache_done.error, 0);
    }
    WAIT_UNTIL(ask(socket, &wants_cache).cache_done.error == 0, 4000);
    mounts->error = ESTALE;
    const struct bhi_message failed = ask(socket, &wants_file);
    BHT_EQ(failed.type, BHI_MSG_OPEN_FAILED);
    BHT_EQ(failed.open_failed.error, ESTALE);
    BHT_STR_EQ(failed.open_failed.what, "fstat");
    end_opener(opener, socket);
    munmap(mounts, sizeof *mounts);
}

/* A copy of the socket in a child of the host keeps the opener from nothing. It serves nobody whose end
 * it would not see; and nobody gives it another host. */
TEST(an_opener_has_one_host_and_ends_with_it) {
    enum { HOST_ENDS, NO_HOST, ANOTHER_HOST, CASES };
    for (int how = 0; how < CASES; how++) {
        int socket;
        const pid_t host = sleeper();
        const pid_t opener = start_opener(&socket, how == NO_HOST ? 0 : host);
        if (how == NO_HOST) {
            send_let_go(socket);
        } else if (how == ANOTHER_HOST) {
            send_watch(socket, getpid());
        } else {
            end(host);
        }
        WAIT_UNTIL(has_ended(opener), WAIT_MS);
        end_opener(opener, socket);
        kill(host, SIGKILL);
        BHT_EQ(waitpid(host, NULL, 0), host);
    }
}
