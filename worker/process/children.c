#include "worker/process/children.h"
#include "base/fd.h"
#include "base/futex.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define REAP_NS (20ull * 1000000) /* from a death to its clearing up */

int bhi_children_init(struct bhi_children *children, void (*tell)(const struct bhi_message *),
                      struct bhi_error *failure) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    children->tell = tell;
    children->reap_ns = BHI_FOREVER;
    children->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (children->signals < 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "create a signalfd", .sys_errno = errno);
    }
    return 0;
}

/* -- the list ------------------------------------------------------------------------------- */

/* Most zygotes have a few children at a time. The places behind these are never looked at, and so
 * take no memory. */
struct bhi_child *bhi_children_place(struct bhi_children *children) {
    for (size_t i = 0; i < children->used; i++) {
        if (children->of[i].pid == 0) {
            return &children->of[i];
        }
    }
    return children->used < BHI_CHILDREN_MOST ? &children->of[children->used++] : NULL;
}

static struct bhi_child *find_worker(struct bhi_children *children, uint64_t worker) {
    for (size_t i = 0; i < children->used; i++) {
        struct bhi_child *child = &children->of[i];
        if (child->pid != 0 && !child->report && child->worker == worker) {
            return child;
        }
    }
    return NULL;
}

static struct bhi_child *find_child(struct bhi_children *children, pid_t pid) {
    for (size_t i = 0; i < children->used; i++) {
        if (children->of[i].pid == pid) {
            return &children->of[i];
        }
    }
    return NULL;
}

bool bhi_children_has(struct bhi_children *children, uint64_t worker) {
    return find_worker(children, worker);
}

unsigned bhi_children_probers(const struct bhi_children *children) {
    unsigned running = 0;
    for (size_t i = 0; i < children->used; i++) {
        running += !!children->of[i].report;
    }
    return running;
}

/* -- device holders -------------------------------------------------------------------------- */

static void end_device_holder(const struct bhi_child *child) {
    if (child->ended.si_pid != 0 && child->released) {
        kill(child->pid, SIGKILL);
    }
}

static void tell_end(const struct bhi_children *children, const struct bhi_child *child,
                     const siginfo_t *info, bool held) {
    struct bhi_message message = {.type = BHI_MSG_EXITED};
    message.exited.worker = child->worker;
    message.exited.code = info->si_code;
    message.exited.status = info->si_status;
    message.exited.held = held;
    children->tell(&message);
}

/* A worker has ended whose device is still held. The release is reported when the holder has ended. */
static void outlive(const struct bhi_children *children, struct bhi_child *child,
                    const siginfo_t *info) {
    tell_end(children, child, info, true);
    child->ended = *info;
    child->pid = child->device_holder;
    child->device_holder = 0;
    child->has_device = false;
    end_device_holder(child);
}

/* A holder has ended before its worker: the worker's own end releases the device. */
static void forget_device_holder(struct bhi_children *children, pid_t pid) {
    for (size_t i = 0; i < children->used; i++) {
        if (children->of[i].pid != 0 && children->of[i].device_holder == pid) {
            children->of[i].device_holder = 0;
        }
    }
}

void bhi_children_release(struct bhi_children *children, uint64_t worker) {
    struct bhi_child *child = find_worker(children, worker);
    if (child) {
        child->released = true;
        end_device_holder(child);
    }
}

/* -- ends ----------------------------------------------------------------------------------- */

static void report(struct bhi_children *children, struct bhi_child *child, const siginfo_t *info) {
    const struct bhi_child ended = *child;
    BHI_AUTO_FD farewell = child->farewell;
    *child = (struct bhi_child){0};
    if (!ended.report) {
        tell_end(children, &ended, info, false);
        return;
    }
    struct bhi_message message = {0};
    if (ended.layer == BHI_TRACE_LAYER) {
        struct bhi_msg_probed probed = {0};
        bhi_probe_finish(ended.report, 0, ended.killed, &probed);
        message.type = BHI_MSG_TRACED;
        message.traced.done = probed.result == BHI_PROBE_HOLDS;
        memcpy(message.traced.text, probed.text, sizeof message.traced.text);
    } else {
        message.type = BHI_MSG_PROBED;
        bhi_probe_finish(ended.report, ended.layer, ended.killed, &message.probed);
    }
    children->tell(&message);
}

/* |child| has ended, and was not reaped. */
static void note_end(struct bhi_children *children, struct bhi_child *child,
                     const siginfo_t *info) {
    if (child->device_holder != 0) {
        outlive(children, child, info);
    } else {
        const siginfo_t how = child->ended.si_pid != 0 ? child->ended : *info;
        report(children, child, &how);
    }
}

void bhi_children_ended(struct bhi_children *children) {
    struct signalfd_siginfo drained;
    while (read(children->signals, &drained, sizeof drained) == (ssize_t)sizeof drained) {
    }
    for (size_t i = 0; i < children->used; i++) {
        struct bhi_child *child = &children->of[i];
        siginfo_t info = {0};
        if (child->pid != 0 &&
            waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid != 0) {
            note_end(children, child, &info);
        }
    }
    if (children->reap_ns == BHI_FOREVER) {
        children->reap_ns = bhi_deadline_ns(REAP_NS);
    }
}

void bhi_children_reap(struct bhi_children *children) {
    children->reap_ns = BHI_FOREVER;
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
            break;
        }
        struct bhi_child *child = find_child(children, info.si_pid);
        if (child) {
            note_end(children, child, &info);
        } else {
            forget_device_holder(children, info.si_pid);
        }
        if (waitid(P_PID, (id_t)info.si_pid, NULL, WEXITED | WNOHANG) != 0) {
            break;
        }
    }
}

int bhi_children_timeout(struct bhi_children *children) {
    const uint64_t now = bhi_now_ns();
    uint64_t next = children->reap_ns;
    for (size_t i = 0; i < children->used; i++) {
        struct bhi_child *child = &children->of[i];
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

void bhi_children_say_farewell(struct bhi_children *children, bool host_gone) {
    for (size_t i = 0; i < children->used; i++) {
        struct bhi_child *child = &children->of[i];
        if (child->pid != 0 && child->farewell >= 0) {
            if (host_gone) {
                (void)!write(child->farewell, "h", 1);
            }
            bhi_fd_close(&child->farewell);
        }
    }
}

bool bhi_children_let_go(const struct bhi_children *children) {
    bool left = false;
    for (size_t i = 0; i < children->used; i++) {
        const struct bhi_child *child = &children->of[i];
        if (child->pid != 0 && child->has_device) {
            left = true;
        } else if (child->pid != 0 && child->ended.si_pid == 0) {
            kill(child->pid, SIGKILL);
        }
    }
    return left;
}
