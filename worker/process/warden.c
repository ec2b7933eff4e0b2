#include "worker/process/warden.h"
#include "base/exiting.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/futex.h"
#include "ipc/fdpass.h"
#include "worker/exit.h"
#include "worker/host.h"
#include "worker/process/warden_remove.h"
#include "worker/process/zygote.h"
#include "worker/sandbox/sandbox.h"
#include "worker/session/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_TIMEOUT_MS  10000 /* for the host's first message */
#define ANSWER_TIMEOUT_MS 2000  /* for a full socket to have room again */
#define KILL_TIMEOUT_MS   15000 /* a GPU's driver may keep a dying process for seconds */
#define CGROUP_PATIENCE   1000000000ull
#define PATIENCE_MS       (BHI_FAREWELL_MS + 50) /* for a zygote to end by itself */

struct warden {
    pid_t host_pid;
    int host;   /* pidfd */
    int folder; /* the runtime folder; -1: removed */
    int child;  /* pidfd of the zygote */
    pid_t pid;
    int go; /* write end of the pipe that the zygote and its workers watch */
    struct bhi_msg_start start;
    struct bhi_zygote_stage *stage;
};

/* Drivers read dozens of variables. They get only those that the host passes on deliberately. */
static int clean_environment(void) {
    static const char *const kept[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "LD_LIBRARY_PATH",
#if BHI_FAULTS
                                       "BULKHEAD_TEST_FAULTS",
#endif
                                       NULL};
    char *values[sizeof kept / sizeof kept[0]] = {NULL};
    int r = 0;
    for (size_t i = 0; kept[i]; i++) {
        const char *value = getenv(kept[i]);
        values[i] = !value ? NULL : strdup(value);
        r = value && !values[i] ? -ENOMEM : r;
    }
    clearenv();
    for (size_t i = 0; kept[i]; i++) {
        if (values[i] && r == 0 && setenv(kept[i], values[i], 1) != 0) {
            r = -errno;
        }
        free(values[i]);
    }
    return r;
}

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
        return bhi_error_set_errno(failure, BH_SYSTEM, n == 0 ? ETIMEDOUT : errno,
                                   "no start message");
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
        return bhi_error_set_errno(failure, BH_SYSTEM, -r, "malformed start message (%s)", why);
    }
    if (message.type != BHI_MSG_START) {
        for (uint32_t i = 0; i < bhi_message_info(message.type)->fds; i++) {
            close(fds[i]);
        }
        return bhi_error_set_errno(failure, BH_SYSTEM, EPROTO,
                                   "the first message was %s, not start",
                                   bhi_message_info(message.type)->name);
    }
    warden->host = fds[0];
    warden->folder = fds[1];
    warden->start = message.start;
    if (warden->start.runtime_dir[0] != '/') {
        return bhi_error_set_errno(failure, BH_SYSTEM, EINVAL,
                                   "the runtime folder '%s' is not absolute",
                                   warden->start.runtime_dir);
    }
    struct pollfd host = {.fd = warden->host, .events = POLLIN};
    if (poll(&host, 1, 0) == 1 && (host.revents & (POLLERR | POLLNVAL)) != 0) {
        return bhi_error_set_errno(failure, BH_SYSTEM, EINVAL,
                                   "the start message came without a pidfd of the host");
    }
    return 1;
}

/* -- the zygote's life ---------------------------------------------------------------------- */

static int clone_zygote(struct warden *warden, struct bhi_zygote_config *config,
                        struct bhi_error *failure) {
    int go[2];
    if (pipe2(go, O_CLOEXEC) != 0) {
        return bhi_error_set_errno(failure, BH_SYSTEM, errno, "cannot create a pipe");
    }
    config->go = go[0];
    config->warden = getpid();
    bhi_namespaces_read(&config->outside);
    warden->pid = bhi_sandbox_clone(&warden->child, &config->layers, failure);
    if (warden->pid == 0) {
        close(go[1]);
        close(warden->host);
        close(warden->folder);
        bhi_zygote_run(config);
    }
    close(go[0]);
    if (warden->pid < 0) {
        close(go[1]);
        return warden->pid;
    }
    int r = bhi_sandbox_map_ids(warden->pid, &config->ids, failure);
    if (r == 0 && write(go[1], "g", 1) != 1) {
        r = bhi_error_set_errno(failure, BH_SYSTEM, errno,
                                "the driver's process (zygote) died at once");
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

static int patience_ms(const struct warden *warden) {
#if BHI_FAULTS
    if (atomic_load(&warden->stage->patient) != 0) {
        return KILL_TIMEOUT_MS;
    }
#endif
    (void)warden;
    return PATIENCE_MS;
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
    if (!reap(warden, patience_ms(warden), &info)) {
        (void)pidfd_send_signal(warden->child, SIGKILL, NULL, 0);
        (void)reap(warden, KILL_TIMEOUT_MS, &info);
    }
    if (warden->start.cgroup_dir[0] != '\0') {
        (void)bhi_remove_cgroup(warden->start.cgroup_dir, CGROUP_PATIENCE);
    }
}

static const char *stage_text(uint32_t stage) {
    switch (stage) {
    case BHI_ZYGOTE_CLONED:
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
static int zygote_is_gone(const struct warden *warden, const struct bhi_driver *driver,
                          const siginfo_t *info) {
    if (atomic_load(&warden->stage->answered) != 0) {
        return atomic_load(&warden->stage->stage) == BHI_ZYGOTE_SERVING ? BHI_EXIT_OK
                                                                        : BHI_EXIT_START_FAILED;
    }
    struct bhi_error failure;
    bhi_error_set_errno(
        &failure, BH_UNSUPPORTED, 0, "the driver's process (zygote) %s %d %s (driver library %s)",
        info->si_code == CLD_EXITED ? "exited with" : "was killed by signal", info->si_status,
        stage_text(atomic_load(&warden->stage->stage)), driver->library);
    return answer(&failure);
}

static int watch(struct warden *warden, const struct bhi_driver *driver) {
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
        siginfo_t info = {0};
        if (fds[ZYGOTE].revents != 0 && reap(warden, 0, &info)) {
            return zygote_is_gone(warden, driver, &info);
        }
    }
}

/* From `start` to a cloned zygote. Returns 1; 0 if the host has gone; or -errno. */
static int begin(struct warden *warden, struct bhi_zygote_config *config,
                 struct bhi_error *failure) {
    int r = read_start(warden, failure);
    if (r <= 0) {
        return r;
    }
    warden->stage = mmap(NULL, sizeof *warden->stage, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (warden->stage == MAP_FAILED) {
        return bhi_error_set_errno(failure, BH_SYSTEM, errno, "cannot map a page");
    }
    if ((r = bhi_sandbox_ids_choose(&config->ids, failure)) != 0) { /* needs the environment */
        return r;
    }
    if ((r = clean_environment()) != 0) {
        return bhi_error_set_errno(failure, BH_SYSTEM, -r, "cannot set the environment");
    }
    if ((r = bhi_sandbox_standard_streams(failure)) != 0 ||
        (r = bhi_driver_pick(&config->driver, warden->start.driver, failure)) != 0) {
        return r;
    }
    config->socket = BHI_HOST_SOCKET;
    config->start = warden->start;
    config->stage = warden->stage;
    r = clone_zygote(warden, config, failure);
    return r == 0 ? 1 : r;
}

int bhi_warden_run(void) {
    static struct bhi_zygote_config config; /* static: it is large, and the zygote keeps it */
    struct warden warden = {.host_pid = getppid(), .host = -1, .folder = -1, .child = -1};
    struct bhi_error failure = {0};

    if (!bhi_host_forget()) {
        return BHI_EXIT_START_FAILED;
    }
    int r = begin(&warden, &config, &failure);
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
    return watch(&warden, &config.driver);
}
