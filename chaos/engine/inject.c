#include "chaos/engine/inject.h"

#include "chaos/engine/random.h"
#include "tool/clock.h"
#include "tool/process_tree.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* The control channel has a lower number: it is connected before the driver opens anything. */
enum { MOST_DESCRIPTORS = 256, GARBAGE_BYTES = 96 };

__attribute__((format(printf, 2, 3))) static void miss(struct bhi_injected *injected,
                                                       const char *format, ...) {
    va_list args;
    injected->missed = true;
    va_start(args, format);
    vsnprintf(injected->why, sizeof injected->why, format, args);
    va_end(args);
}

static bool is_zygote(int32_t pid) {
    struct bhi_process process;
    return bhi_process_read(pid, &process) && bhi_process_is_zygote(&process);
}

static bool is_worker(int32_t pid) {
    struct bhi_process process;
    return bhi_process_read(pid, &process) && is_zygote(process.parent);
}

/* The pid may have been reaped since the caller got it, and may now belong to another process. A
 * pidfd always means the same process. So it is opened first, |still| then checks the process, and
 * the signal goes to the pidfd. Returns -1 if the process has gone. */
static int hold(int32_t pid, bool (*still)(int32_t pid)) {
    const int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0 || still(pid)) {
        return pidfd;
    }
    close(pidfd);
    errno = ESRCH;
    return -1;
}

/* With a full table no pidfd can be opened. Then the signal goes to the pid, directly after the
 * check. */
static bool send_signal(int32_t pid, bool (*still)(int32_t pid), int signal_number) {
    const int pidfd = hold(pid, still);
    if (pidfd < 0) {
        return (errno == EMFILE || errno == ENFILE) && kill(pid, signal_number) == 0;
    }
    const bool sent = pidfd_send_signal(pidfd, signal_number, NULL, 0) == 0;
    close(pidfd);
    return sent;
}

static void inject_signal(const struct bhi_injection *injection, int signal_number,
                          struct bhi_injected *injected) {
    injected->pids[injected->pid_count++] = injection->pid;
    if (!send_signal(injection->pid, is_worker, signal_number)) {
        miss(injected, "signal %d to worker %d: %s", signal_number, injection->pid,
             strerror(errno));
    }
}

/* The zygote is stopped first, so that no child is born between listing its children and the
 * kill. */
static void inject_zygote(const struct bhi_injection *injection, struct bhi_injected *injected) {
    struct bhi_process worker, zygote;
    struct bhi_process_tree tree;
    if (!bhi_process_read(injection->pid, &worker) || !bhi_process_read(worker.parent, &zygote) ||
        !bhi_process_is_zygote(&zygote)) {
        miss(injected, "worker %d has no zygote", injection->pid);
        return;
    }
    if (!send_signal(zygote.pid, is_zygote, SIGSTOP)) {
        miss(injected, "SIGSTOP to zygote %d: %s", (int)zygote.pid, strerror(errno));
        return;
    }
    if (!bhi_process_tree_read(zygote.pid, &tree)) {
        send_signal(zygote.pid, is_zygote, SIGCONT);
        miss(injected, "the workers of zygote %d cannot be listed: %s", (int)zygote.pid,
             strerror(errno));
        return;
    }
    for (size_t i = 0; i < tree.count; i++) {
        if (tree.processes[i].parent == zygote.pid && injected->pid_count < BHI_CHAOS_STREAMS) {
            injected->pids[injected->pid_count++] = tree.processes[i].pid;
        }
    }
    bhi_process_tree_free(&tree);
    if (!send_signal(zygote.pid, is_zygote, SIGKILL)) {
        miss(injected, "SIGKILL to zygote %d: %s", (int)zygote.pid, strerror(errno));
    }
}

/* Returns a copy of the worker's end of its control channel, which is its only connected Unix
 * stream. Returns -1 if there is none or access is denied. */
static int control_socket(int pidfd, int32_t pid, struct bhi_injected *injected) {
    int found = -1, error = pidfd < 0 ? errno : ENOENT;
    for (int fd = 0; pidfd >= 0 && fd < MOST_DESCRIPTORS && found < 0; fd++) {
        const int copy = pidfd_getfd(pidfd, fd, 0);
        int domain = 0, type = 0, listens = 0;
        socklen_t length = sizeof(int), type_length = sizeof(int), listens_length = sizeof(int);
        if (copy < 0) {
            if (errno == EBADF) {
                continue;
            }
            error = errno;
            break;
        }
        if (getsockopt(copy, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX &&
            getsockopt(copy, SOL_SOCKET, SO_TYPE, &type, &type_length) == 0 &&
            type == SOCK_STREAM &&
            getsockopt(copy, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_length) == 0 &&
            !listens) {
            found = copy;
        } else {
            close(copy);
        }
    }
    if (found < 0) {
        miss(injected, "the control socket of worker %d: %s%s", pid, strerror(error),
             error == EPERM ? " (it takes the right to trace it: CAP_SYS_PTRACE)" : "");
    }
    return found;
}

void bhi_inject_socket(const struct bhi_injection *injection, int pidfd,
                       struct bhi_injected *injected) {
    uint64_t words[GARBAGE_BYTES / sizeof(uint64_t)];
    struct bhi_random random;
    injected->pids[injected->pid_count++] = injection->pid;
    const int control = control_socket(pidfd, injection->pid, injected);
    if (control < 0) {
        return;
    }
    bhi_random_seed(&random, injection->salt, 1);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        words[i] = bhi_random_next(&random);
    }
    injected->at_ns = bhi_clock_ns();
    if (injection->kind == BHI_FAULT_CLOSE
            ? shutdown(control, SHUT_RDWR) != 0
            : send(control, words, sizeof words, MSG_DONTWAIT | MSG_NOSIGNAL) <= 0) {
        miss(injected, "the control socket of worker %d: %s", injection->pid, strerror(errno));
    }
    close(control);
}

static void inject_socket(const struct bhi_injection *injection, struct bhi_injected *injected) {
    const int pidfd = hold(injection->pid, is_worker);
    bhi_inject_socket(injection, pidfd, injected);
    if (pidfd >= 0) {
        close(pidfd);
    }
}

void bhi_inject(const struct bhi_injection *injection, struct bhi_injected *out_injected) {
    *out_injected = (struct bhi_injected){.at_ns = bhi_clock_ns()};
    switch (injection->kind) {
    case BHI_FAULT_KILL:
    case BHI_FAULT_DEVICE:
        inject_signal(injection, SIGKILL, out_injected);
        break;
    case BHI_FAULT_SEGV:
        inject_signal(injection, SIGSEGV, out_injected);
        break;
    case BHI_FAULT_STOP:
    case BHI_FAULT_SLOW:
        inject_signal(injection, SIGSTOP, out_injected);
        break;
    case BHI_FAULT_ZYGOTE:
        inject_zygote(injection, out_injected);
        break;
    case BHI_FAULT_GARBAGE:
    case BHI_FAULT_CLOSE:
        inject_socket(injection, out_injected);
        break;
    default:
        miss(out_injected, "%s cannot be injected from this process",
             bhi_fault_name(injection->kind));
    }
}

void bhi_inject_resume(int32_t pid) {
    send_signal(pid, is_worker, SIGCONT);
}
