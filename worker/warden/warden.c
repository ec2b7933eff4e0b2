/* bulkhead-warden: the processes of a context that have the host's rights, and nothing to do with
 * kernels. Started by libbulkhead, never by hand.
 *
 *   host (libbulkhead)
 *     │ ▲  seqpacket, fd 3
 *     ├─┴─ posix_spawn ─▶ bulkhead-warden warden      watches pidfds of host and zygote
 *     │                     └─ clone(namespaces), exec ─▶ bulkhead-worker zygote  (process/zygote.c)
 *     └─── posix_spawn ─▶ bulkhead-warden opener      opens files for loaders (opener.c)
 *
 * It is a program of its own so that neither compilers nor drivers are in a process that can open the
 * host's files. docs/sandbox.md has the table of who may do what.
 *
 * When the host has gone, however it died, the warden kills the zygote (the kernel then kills all
 * workers) and removes the runtime folder and the cgroups. When the zygote has gone, the warden
 * reaps it. When the warden has gone, the zygote ends by itself (orphan.h). The warden waits only
 * in poll(): for processes without a limit, because the kernel reports their end, and for a peer's
 * message with a time limit. */
#include "base/exiting.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/format.h"
#include "base/futex.h"
#include "base/memfd.h"
#include "base/owner.h"
#include "ipc/fdpass.h"
#include "worker/exit.h"
#include "worker/host.h"
#include "worker/opener/opener.h"
#include "worker/title.h"
#include "worker/warden/zygote_start.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_TIMEOUT_MS  10000 /* for the host's first message */
#define ANSWER_TIMEOUT_MS 2000  /* for a full socket to have room again */
#define KILL_TIMEOUT_MS   15000 /* a GPU's driver may keep a dying process for seconds */
#define CGROUP_PATIENCE   1000000000ull
#define CGROUP_RETRY_NS   2000000
#define TITLE_BYTES       80 /* room for the titles of zygote and workers (title.h) */
#define PATIENCE_MS       (BHI_FAREWELL_MS + 50) /* for a zygote to end by itself */

struct warden {
    pid_t host_pid;
    int host;    /* pidfd */
    int folder;  /* the runtime folder; -1: removed */
    int program; /* the worker's, which the zygote executes */
    int child;   /* pidfd of the zygote */
    pid_t pid;
    int go; /* write end of the pipe that the zygote and its workers watch */
    struct bhi_msg_start start;
    struct bhi_zygote_start *zygote;
};

/* -- the conversation ----------------------------------------------------------------------- */

static int answer(const struct bhi_error *failure) {
    struct bhi_message message;
    bhi_error_message(failure, &message);
    struct pollfd ready = {.fd = BHI_HOST_SOCKET, .events = POLLOUT};
    if (poll(&ready, 1, ANSWER_TIMEOUT_MS) == 1) {
        (void)bhi_fdpass_send_message(BHI_HOST_SOCKET, &message, NULL, 0);
    }
    return BHI_EXIT_START_FAILED;
}

/* Reads `start`. Returns 1; 0 if the host has gone; or -errno with |failure|. */
static int read_start(struct warden *warden, struct bhi_error *failure) {
    struct pollfd ready = {.fd = BHI_HOST_SOCKET, .events = POLLIN};
    int n = poll(&ready, 1, START_TIMEOUT_MS);
    if (n <= 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "get the start message",
                         .sys_errno = n == 0 ? ETIMEDOUT : errno);
    }
    struct bhi_message message;
    int fds[BHI_FDPASS_MAX];
    char why[200] = "";
    int r = bhi_fdpass_recv_message(BHI_HOST_SOCKET, BHI_S2Z, &message, fds, MSG_DONTWAIT, why,
                                    sizeof why);
    if (r == 0) {
        return 0;
    }
    if (r < 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "read the start message", .text = why,
                         .sys_errno = -r);
    }
    if (message.type != BHI_MSG_START) {
        for (uint32_t i = 0; i < bhi_message_info(message.type)->fds; i++) {
            close(fds[i]);
        }
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "take another message before start",
                         .text = bhi_message_info(message.type)->name, .sys_errno = EPROTO);
    }
    warden->host = fds[0];
    warden->folder = fds[1];
    warden->program = fds[2];
    warden->start = message.start;
    if (warden->start.runtime_dir[0] != '/') {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "use a relative runtime folder",
                         .text = warden->start.runtime_dir, .sys_errno = EINVAL);
    }
    struct pollfd host = {.fd = warden->host, .events = POLLIN};
    if (poll(&host, 1, 0) == 1 && (host.revents & (POLLERR | POLLNVAL)) != 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "start without a pidfd of the host",
                         .sys_errno = EINVAL);
    }
    return 1;
}

/* -- the zygote's life ---------------------------------------------------------------------- */

/* Drivers read dozens of variables. They get only those that the host passes on deliberately. */
static void choose_environment(char **out, size_t most) {
    static const char *const kept[] = {"VK_DRIVER_FILES",
                                       "VK_ICD_FILENAMES",
                                       "LD_LIBRARY_PATH",
                                       "BULKHEAD_NVRTC",
                                       "CUDA_HOME",
                                       "CUDA_PATH",
                                       NULL};
    size_t count = 0;
    for (size_t i = 0; kept[i] && count < most; i++) {
        const size_t length = strlen(kept[i]);
        for (char **entry = environ; *entry && count < most; entry++) {
            if (strncmp(*entry, kept[i], length) == 0 && (*entry)[length] == '=') {
                out[count++] = *entry;
                break;
            }
        }
    }
    out[count] = NULL;
}

/* Puts the zygote's descriptors where it expects them. The others close when it is executed. */
static int place_descriptors(const int *fds, int count) {
    int moved[BHI_ZYGOTE_PROGRAM + 1];
    for (int i = 0; i < count; i++) { /* above the targets, so that none overwrites another */
        moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, BHI_ZYGOTE_SOCKET + count);
        if (moved[i] < 0) {
            return -errno;
        }
    }
    for (int i = 0; i < count; i++) {
        if (dup2(moved[i], BHI_ZYGOTE_SOCKET + i) < 0) {
            return -errno;
        }
    }
    return 0;
}

/* In the child. The program is executed inside the namespaces, so that not one instruction of it runs
 * with the host's capabilities; and when the ids are mapped, because its files have no owner before. */
static _Noreturn void execute(struct bhi_zygote_start *zygote, int go, int page, int program) {
    char byte, link[32], path[PATH_MAX], room[TITLE_BYTES] = "", *environment[8];
    ssize_t n = -1;
    /* The death signal survives the exec. If the warden died before, the read ends. */
    while (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && (n = read(go, &byte, 1)) < 0 && errno == EINTR)
        ;
    if (n != 1) {
        _exit(BHI_EXIT_START_FAILED);
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", program);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    memset(room, '.', sizeof room - 1);
    char *argv[] = {path, (char[]){"zygote"}, room, NULL};
    choose_environment(environment, sizeof environment / sizeof environment[0] - 1);
    const int fds[] = {BHI_HOST_SOCKET, go, page, program};
    int error = -bhi_sandbox_keep_capabilities();
    error = error != 0 ? error : -place_descriptors(fds, sizeof fds / sizeof fds[0]);
    if (error == 0) {
        atomic_store(&zygote->stage, BHI_ZYGOTE_EXECUTED);
        (void)execveat(BHI_ZYGOTE_PROGRAM, "", argv, environment, AT_EMPTY_PATH);
        error = errno;
    }
    atomic_store(&zygote->error, error);
    _exit(BHI_EXIT_START_FAILED);
}

/* Before Linux 6.16, an exec with another real id than the effective one, of a set-uid host, takes the
 * ambient capabilities. */
static int take_effective_ids(void) {
    return setresgid(getegid(), getegid(), getegid()) == 0 &&
                   setresuid(geteuid(), geteuid(), geteuid()) == 0
               ? 0
               : -errno;
}

static int clone_zygote(struct warden *warden, int page, int program, struct bhi_error *failure) {
    int go[2], r;
    if (pipe2(go, O_CLOEXEC) != 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "create a pipe", .sys_errno = errno);
    }
    bhi_namespaces_read(&warden->zygote->outside);
    uint64_t layers = 0;
    warden->pid = bhi_sandbox_clone(&warden->child, &layers, failure);
    if (warden->pid == 0) {
        close(go[1]);
        execute(warden->zygote, go[0], page, program);
    }
    close(go[0]);
    if (warden->pid < 0) {
        close(go[1]);
        return warden->pid;
    }
    warden->zygote->layers = layers;
    r = bhi_sandbox_map_ids(warden->pid, &warden->zygote->ids, failure);
    if (r == 0 && write(go[1], "g", 1) != 1) {
        r = BHI_ERROR(failure, BH_REASON_SYSTEM_STEP,
                      "use the driver's process (zygote), which died at once", .sys_errno = errno);
    }
    /* The pipe stays open. Its hang-up tells the workers that the host has ended. It also tells the
     * zygote that we have ended, if we died before it set PDEATHSIG. */
    warden->go = go[1];
    return r;
}

/* Returns true when the zygote was reaped. */
static bool reap(const struct warden *warden, int timeout_ms, siginfo_t *info) {
    struct pollfd ended = {.fd = warden->child, .events = POLLIN};
    int n;
    const uint64_t deadline = bhi_deadline_ns((uint64_t)timeout_ms * 1000000u);
    do {
        n = poll(&ended, 1, timeout_ms);
    } while (n < 0 && errno == EINTR && bhi_now_ns() < deadline);
    return n == 1 && waitid(P_PIDFD, (id_t)warden->child, info, WEXITED | WNOHANG) == 0;
}

static int is_dots(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Tries once to remove the groups. A cgroup's own files cannot be unlinked; they go with it. */
static int try_cgroup(const char *path) {
    BHI_AUTO_DIR *dir = bhi_folder_open(AT_FDCWD, path);
    if (!dir) {
        return errno == ENOENT ? 0 : -errno;
    }
    for (const struct dirent *entry; (entry = readdir(dir));) {
        struct stat st;
        if (!is_dots(entry->d_name) &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(st.st_mode)) {
            (void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
        }
    }
    return rmdir(path) == 0 || errno == ENOENT ? 0 : -errno;
}

/* Removes the cgroup at |path| and the groups in it. They are busy until the kernel has taken apart the
 * last process, which may be after its end was reported. */
static void remove_cgroup(const char *path) {
    const uint64_t deadline = bhi_deadline_ns(CGROUP_PATIENCE);
    for (;;) {
        if (try_cgroup(path) != -EBUSY || bhi_now_ns() >= deadline) {
            return;
        }
        const struct timespec pause = {.tv_nsec = CGROUP_RETRY_NS};
        nanosleep(&pause, NULL);
    }
}

static void host_is_gone(struct warden *warden) {
    siginfo_t info;
    /* The byte comes first, so that workers stop what runs on a device; the signal comes later. A
     * byte means that the host has gone; a hang-up without it means only that this process has
     * gone. */
    (void)!write(warden->go, "h", 1);
    close(warden->go);
    /* The folder goes at once, even if the driver keeps the zygote for some time. */
    (void)bhi_folder_remove(bhi_fd_steal(&warden->folder),
                            strrchr(warden->start.runtime_dir, '/') + 1);
    if (!reap(warden, PATIENCE_MS, &info)) {
        (void)pidfd_send_signal(warden->child, SIGKILL, NULL, 0);
        (void)reap(warden, KILL_TIMEOUT_MS, &info);
    }
    if (warden->start.cgroup_dir[0] != '\0') {
        remove_cgroup(warden->start.cgroup_dir);
    }
}

static const char *stage_text(uint32_t stage) {
    switch (stage) {
    case BHI_ZYGOTE_BEGUN:
        return "before it did anything";
    case BHI_ZYGOTE_LOADING:
        return "while it loaded the driver";
    case BHI_ZYGOTE_ROOTING:
        return "while it made the worker's root";
    case BHI_ZYGOTE_SCOUTING:
        return "while it listed the devices";
    default:
        return "while it served";
    }
}

/* The zygote has ended and was reaped. If it died before it could report why, the warden reports
 * it. */
static int zygote_is_gone(const struct warden *warden, const siginfo_t *info) {
    const struct bhi_zygote_start *zygote = warden->zygote;
    const uint32_t stage = atomic_load(&zygote->stage);
    struct bhi_error failure;
    if (atomic_load(&zygote->answered) != 0) {
        return stage == BHI_ZYGOTE_SERVING ? BHI_EXIT_OK : BHI_EXIT_START_FAILED;
    }
    const int error = atomic_load(&zygote->error);
    if (stage == BHI_ZYGOTE_EXECUTED && error == 0) {
        return BHI_EXIT_START_FAILED; /* the program is no worker: the host hears nothing of it */
    }
    if (stage == BHI_ZYGOTE_EXECUTED) { /* the host knows which program it is, and adds that */
        BHI_ERROR(&failure, BH_REASON_WORKER_PROGRAM, .sys_errno = error);
    } else if (error != 0) {
        BHI_ERROR(&failure, BH_REASON_SYSTEM_STEP, "prepare the worker program",
                  .sys_errno = error);
    } else if (info->si_code == CLD_KILLED && info->si_status == SIGKILL) {
        /* A driver that crashes ends with another signal: this was the kernel, out of memory, or
         * somebody. The next start may succeed. */
        BHI_ERROR(&failure, BH_REASON_PROCESS_DIED, "the driver's process (zygote)");
    } else {
        char library[sizeof zygote->library + 1] = "", how[128];
        memcpy(library, zygote->library, sizeof zygote->library);
        bhi_format(how, sizeof how, "%s %d %s",
                   info->si_code == CLD_EXITED ? "exited with" : "was killed by signal",
                   info->si_status, stage_text(stage));
        BHI_ERROR(&failure, BH_REASON_ZYGOTE_DIED, library, .text = how);
    }
    return answer(&failure);
}

static int watch(struct warden *warden) {
    enum { HOST, ZYGOTE, SOCKET, WATCHED };
    bool hung_up = false;
    for (;;) {
        struct pollfd fds[WATCHED] = {[HOST] = {.fd = warden->host, .events = POLLIN},
                                      [ZYGOTE] = {.fd = warden->child, .events = POLLIN},
                                      [SOCKET] = {.fd = hung_up ? -1 : BHI_HOST_SOCKET}};
        if (poll(fds, WATCHED, -1) < 0 && errno != EINTR) {
            fds[HOST].revents = POLLIN; /* poll failed: treat it as the host's end, which is safe */
        }
        /* The pidfd of a dying host is readable when its descriptors are closed. Some may be a
         * GPU's, and while a kernel hangs, closing one takes 4 s: so long that nobody would be told
         * to stop the kernel. The socket is closed before them. */
        hung_up = hung_up || fds[SOCKET].revents != 0;
        if (fds[HOST].revents != 0 ||
            (fds[SOCKET].revents != 0 && bhi_first_thread_is_exiting(warden->host_pid))) {
            host_is_gone(warden);
            return BHI_EXIT_OK;
        }
        /* The host has given up a zygote that does not get ready. It would notice that when its driver
         * has loaded, which may be never. */
        if (fds[SOCKET].revents != 0 && atomic_load(&warden->zygote->stage) < BHI_ZYGOTE_SERVING) {
            (void)pidfd_send_signal(warden->child, SIGKILL, NULL, 0);
        }
        siginfo_t info = {0};
        if (fds[ZYGOTE].revents != 0 && reap(warden, 0, &info)) {
            return zygote_is_gone(warden, &info);
        }
    }
}

/* From `start` to a cloned zygote. Returns 1; 0 if the host has gone; or -errno. */
static int begin(struct warden *warden, struct bhi_error *failure) {
    int r = read_start(warden, failure);
    if (r <= 0) {
        return r;
    }
    /* Sealed: the zygote could truncate it under the mapping. */
    BHI_AUTO_FD page = bhi_memfd_create("bulkhead zygote", sizeof *warden->zygote, 0);
    BHI_AUTO_FD program = bhi_fd_steal(&warden->program);
    warden->zygote =
        page < 0 ? MAP_FAILED
                 : mmap(NULL, sizeof *warden->zygote, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    if (warden->zygote == MAP_FAILED) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "map a page",
                         .sys_errno = page < 0 ? -page : errno);
    }
    warden->zygote->bytes = sizeof *warden->zygote;
    warden->zygote->warden = getpid();
    warden->zygote->start = warden->start;
    if ((r = bhi_sandbox_ids_choose(&warden->zygote->ids, failure)) != 0 ||
        (r = bhi_host_drop_streams(failure)) != 0) {
        return r;
    }
    if ((r = take_effective_ids()) != 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "take the effective ids", .sys_errno = -r);
    }
    r = clone_zygote(warden, page, program, failure);
    return r == 0 ? 1 : r;
}

static int run(void) {
    struct warden warden = {
        .host_pid = getppid(), .host = -1, .folder = -1, .program = -1, .child = -1};
    struct bhi_error failure = {0};

    if (!bhi_host_forget()) {
        return BHI_EXIT_START_FAILED;
    }
    int r = begin(&warden, &failure);
    if (r == 0) {
        return BHI_EXIT_OK;
    }
    if (r < 0) {
        if (warden.child >= 0) {
            siginfo_t info;
            (void)pidfd_send_signal(warden.child, SIGKILL, NULL, 0);
            (void)reap(&warden, KILL_TIMEOUT_MS, &info);
        }
        return answer(&failure);
    }
    return watch(&warden);
}

/* -- the command line ----------------------------------------------------------------------- */

static const char help[] =
    "bulkhead-warden serves a program that uses libbulkhead.\n"
    "\n"
    "It is started by the library, with a socket as descriptor 3:\n"
    "    bulkhead-warden warden    starts bulkhead-worker in a sandbox, and cleans up after it\n"
    "    bulkhead-warden opener    opens files, which may take for ever\n"
    "There is nothing to be done with it by hand. To run a kernel: bulkhead run --help.\n"
    "To see what the sandbox does on this machine: bulkhead doctor.\n";

int main(int argc, char **argv) {
    /* The dots make room for the titles (title.h). */
    const bool mode = argc == 2 || (argc == 3 && argv[2][strspn(argv[2], ".")] == '\0');
    if (mode && strcmp(argv[1], "warden") == 0) {
        bhi_title_init(argc, argv);
        bhi_title_set("bh-warden", "warden");
        return run();
    }
    if (mode && strcmp(argv[1], "opener") == 0) {
        bhi_title_init(argc, argv);
        bhi_title_set("bh-opener", "opener");
        return bhi_opener_run();
    }
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("bulkhead-warden " BHI_VERSION);
        return 0;
    }
    fprintf(stderr, "bulkhead-warden: it is started by libbulkhead; see bulkhead-warden --help\n");
    return 2;
}
