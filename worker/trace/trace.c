#include "base/fd.h"
#include "base/format.h"
#include "ipc/fdpass.h"
#include "worker/sandbox/judge.h"
#include "worker/title.h"
#include "worker/trace/run.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif

/* -- the tracee ------------------------------------------------------------------------------- */

/* Sends every call to the process that holds the listener, except the call that sends the
 * listener. */
static int listen_to_all(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendmsg, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BHI_FDPASS_DESCRIPTOR, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    long fd =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    return fd < 0 ? -errno : (int)fd;
}

static bool enter(const struct bhi_probe_context *context, uint32_t index,
                  struct bhi_trace_course *course, int socket, struct bhi_tracee_page *page) {
    struct bhi_error failure = {.status = BH_OK};
    struct bhi_sandbox sandbox = {.driver = context->driver,
                                  .node = bhi_nodes_path(context->nodes, index)};
    int doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int kept[] = {
        socket,        doorbell,     course->buffers[0], course->buffers[1], course->buffers[2],
        course->cache, course->given};
    if (doorbell < 0 ||
        bhi_sandbox_descriptors(kept, sizeof kept / sizeof kept[0], &failure) != 0 ||
        bhi_sandbox_enter(&sandbox, &failure) != 0) {
        bhi_format(page->failure, sizeof page->failure, "cannot enter the sandbox: %.200s",
                   bhi_error_line(&failure));
        return false;
    }
    memcpy(course->buffers, &kept[2], sizeof course->buffers);
    course->cache = kept[5];
    course->given = kept[6];
    page->pid = (int32_t)getpid();
    (void)prctl(PR_SET_DUMPABLE, 1); /* otherwise the tracer cannot read paths, and shows none */
    const int listener = listen_to_all();
    if (listener < 0 || bhi_fdpass_send(BHI_FDPASS_DESCRIPTOR, "", 1, &listener, 1) != 0) {
        bhi_format(page->failure, sizeof page->failure, "cannot be traced: %s",
                   strerrordesc_np(listener < 0 ? -listener : EPIPE));
        return false;
    }
    close(listener);
    return true;
}

static _Noreturn void be_tracee(const struct bhi_probe_context *context, uint32_t index, int socket,
                                const struct bhi_trace_handed *handed, int given,
                                struct bhi_tracee_page *page) {
    struct bhi_trace_course course;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() == 1) {
        _exit(1); /* the tracer has ended already */
    }
    if (bhi_trace_course_prepare(&course, (enum bhi_trace_role)handed->role, handed, given, page) &&
        enter(context, index, &course, socket, page)) {
        bhi_trace_course_run(&course, context, index, page);
    }
    atomic_store(&page->phase, BHI_TRACE_PHASES);
    _exit(0);
}

/* -- the tracer ------------------------------------------------------------------------------- */

struct tracer {
    struct bhi_judge judge;
    struct bhi_tracee_page *tracee;
    struct bhi_trace_page *page;
    pid_t pid;
    int listener;
};

static void record(struct tracer *tracer, uint32_t phase, int number, const uint64_t args[6],
                   int judged) {
    struct bhi_trace_page *page = tracer->page;
    struct bhi_trace_call entry = {
        .count = 1,
        .phase = phase,
        .judgement = judged == 0                ? BHI_TRACE_ALLOWED
                     : judged == BHI_JUDGE_DIES ? BHI_TRACE_UNKNOWN
                                                : BHI_TRACE_ANSWERED,
        .number = number,
        .error = judged > 0 ? judged : 0,
    };
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
    bhi_format(entry.name, sizeof entry.name, "%s", name ? name : "a call without a name");
    free(name);
    bhi_trace_text(tracer->pid, number, args, entry.arguments, sizeof entry.arguments);
    page->unknown += entry.judgement == BHI_TRACE_UNKNOWN;
    for (uint32_t i = 0; i < page->count; i++) {
        struct bhi_trace_call *known = &page->calls[i];
        if (known->phase == entry.phase && known->number == entry.number &&
            known->judgement == entry.judgement && strcmp(known->arguments, entry.arguments) == 0) {
            known->count++;
            return;
        }
    }
    if (page->count < BHI_TRACE_CALLS) {
        page->calls[page->count++] = entry;
    } else {
        page->dropped++;
    }
}

static bool behind_b(uint32_t phase) {
    return phase == BHI_TRACE_RUNNING || phase == BHI_TRACE_MEMORY || phase == BHI_TRACE_WORDS;
}

static void answer(struct tracer *tracer) {
    struct seccomp_notif call = {0};
    if (ioctl(tracer->listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) {
        return; /* the tracee has died, or a signal has interrupted the call */
    }
    const uint32_t phase = atomic_load(&tracer->tracee->phase);
    int judged = 0;
    if (phase < BHI_TRACE_PHASES) {
        uint64_t args[6];
        for (size_t i = 0; i < 6; i++) {
            args[i] = call.data.args[i];
        }
        tracer->judge.pid = tracer->tracee->pid;
        memcpy(tracer->judge.open, tracer->tracee->open, sizeof tracer->judge.open);
        judged = bhi_sandbox_judge(&tracer->judge,
                                   behind_b(phase) ? BHI_FILTER_STEADY : BHI_FILTER_START,
                                   call.data.nr, args);
        record(tracer, phase, call.data.nr, args, judged);
    }
    struct seccomp_notif_resp response = {.id = call.id};
    if (judged > 0) {
        response.error = -judged;
    } else {
        response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    (void)ioctl(tracer->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* Answers calls until the tracee has ended. */
static void serve(struct tracer *tracer) {
    for (;;) {
        struct pollfd ready = {.fd = tracer->listener, .events = POLLIN};
        if (poll(&ready, 1, -1) < 0) {
            continue;
        }
        if (ready.revents & POLLIN) {
            answer(tracer);
        } else if (ready.revents != 0) {
            return;
        }
    }
}

/* Takes what the tracee of |role| has left. The first failure counts. */
static void finish(struct tracer *tracer, enum bhi_trace_role role) {
    static const char *const whose[BHI_TRACE_ROLES] = {
        [BHI_TRACE_WORKER] = "",
        [BHI_TRACE_IMPORTER] = "importing device memory: ",
        [BHI_TRACE_SENTINELS] = "the sentinel: ",
    };
    struct bhi_trace_page *page = tracer->page;
    const struct bhi_tracee_page *tracee = tracer->tracee;
    siginfo_t end = {0};
    (void)waitid(P_PID, (id_t)tracer->pid, &end, WEXITED);
    const bool complete = atomic_load(&tracee->complete) == 1;
    if (role == BHI_TRACE_WORKER) {
        const struct bhi_driver_info *info = tracer->judge.driver->info;
        page->complete = complete;
        bhi_format(page->driver, sizeof page->driver, "%s", info->name);
        bhi_format(page->version, sizeof page->version, "%.*s", (int)sizeof page->version - 1,
                   tracee->version);
        bhi_driver_made_for(info, page->made_for, sizeof page->made_for);
        page->known = bhi_driver_knows(info, page->version);
        page->tried = info->tried;
        bhi_format(page->left_out, sizeof page->left_out, "%.*s", (int)sizeof page->left_out - 1,
                   tracee->left_out);
    }
    page->complete &= complete;
    if (page->failure[0] != '\0') {
        return;
    }
    if (end.si_code != CLD_EXITED) {
        bhi_format(page->failure, sizeof page->failure, "%sit was killed by SIG%s%s%.150s",
                   whose[role], sigabbrev_np(end.si_status), tracee->failure[0] != '\0' ? ": " : "",
                   tracee->failure);
    } else if (tracee->failure[0] != '\0') {
        bhi_format(page->failure, sizeof page->failure, "%s%.200s", whose[role], tracee->failure);
    }
}

/* Collects what a tracee has sent for others: |fds| and |handed| have one entry for each role. */
static void collect(int socket, struct bhi_trace_handed handed[BHI_TRACE_ROLES],
                    int fds[BHI_TRACE_ROLES]) {
    struct bhi_trace_handed one;
    int fd;
    size_t count = 1;
    while (bhi_fdpass_recv(socket, &one, sizeof one, &fd, &count, MSG_DONTWAIT) ==
               (int)sizeof one &&
           count == 1) {
        if (one.role < BHI_TRACE_ROLES && fds[one.role] < 0) {
            handed[one.role] = one;
            fds[one.role] = fd;
        } else {
            close(fd);
        }
    }
}

/* Runs one tracee, from its fork to its end. Returns false if it did not begin; |why| says the
 * reason. */
static bool trace_one(struct tracer *tracer, const struct bhi_probe_context *context,
                      uint32_t index, enum bhi_trace_role role,
                      struct bhi_trace_handed handed[BHI_TRACE_ROLES], int fds[BHI_TRACE_ROLES],
                      char *why, size_t why_size) {
    int pair[2];
    if (bhi_fdpass_pair(pair) != 0) {
        snprintf(why, why_size, "no descriptors for a trace");
        return false;
    }
    memset(tracer->tracee, 0, sizeof *tracer->tracee);
    tracer->pid = fork();
    if (tracer->pid == 0) {
        handed[role].role = role;
        be_tracee(context, index, pair[0], &handed[role], fds[role], tracer->tracee);
    }
    close(pair[0]);
    if (tracer->pid < 0) {
        bhi_format(why, why_size, "cannot fork: %s", strerrordesc_np(errno));
        close(pair[1]);
        return false;
    }
    char byte;
    size_t count = 1;
    const int length = bhi_fdpass_recv(pair[1], &byte, 1, &tracer->listener, &count, 0);
    const bool begun = length == 1 && count == 1;
    if (begun) {
        serve(tracer);
        close(tracer->listener);
        collect(pair[1], handed, fds);
    }
    close(pair[1]);
    finish(tracer, role);
    if (!begun) {
        bhi_format(why, why_size, "%.250s",
                   tracer->page->failure[0] != '\0' ? tracer->page->failure
                                                    : "the traced process did not begin");
    }
    return begun;
}

struct request {
    uint32_t index;
    struct bhi_trace_page *page;
};

static void trace(const struct bhi_probe_context *context, const void *argument,
                  struct bhi_probe_report *report) {
    bhi_title_set("bh-tracer", "tracer");
    const uint32_t index = ((const struct request *)argument)->index;
    struct bhi_trace_page *page = ((const struct request *)argument)->page;
    struct tracer tracer = {.judge = {.driver = context->driver}, .page = page, .listener = -1};
    struct bhi_trace_handed handed[BHI_TRACE_ROLES] = {{0}};
    int fds[BHI_TRACE_ROLES] = {-1, -1, -1};
    report->result = BHI_PROBE_BROKEN;
    tracer.tracee = mmap(NULL, sizeof *tracer.tracee, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tracer.tracee == MAP_FAILED) {
        snprintf(report->text, sizeof report->text, "no memory for a trace");
        return;
    }
    for (uint32_t role = 0; role < BHI_TRACE_ROLES; role++) {
        if ((role == BHI_TRACE_WORKER || fds[role] >= 0) &&
            !trace_one(&tracer, context, index, (enum bhi_trace_role)role, handed, fds,
                       report->text, sizeof report->text)) {
            return;
        }
    }
    report->result = BHI_PROBE_HOLDS;
}

pid_t bhi_trace_start(const struct bhi_probe_context *context, uint32_t index,
                      struct bhi_trace_page *page, struct bhi_probe_report **out_report) {
    const struct request request = {.index = index, .page = page};
    return bhi_prober_start(context, trace, &request, out_report);
}
