/* Zygote and worker as processes: what fails while they start, and what is done between their steps. */
#include "faults.h"
#include "wrap.h"

#include "base/fd.h"
#include "base/futex.h"
#include "ipc/channel.h"
#include "ipc/fdpass.h"
#include "ipc/progress.h"
#include "worker/process/oom_score.h"
#include "worker/process/worker.h"
#include "worker/sandbox/judge.h"
#include "worker/sandbox/seccomp.h"
#include "worker/session/orphan.h"
#include "worker/session/session.h"
#include "worker/title.h"
#include "worker/warden/zygote_start.h"

#include <bulkhead/status.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- the zygote ------------------------------------------------------------------------------- */

#define PATIENCE_NS UINT64_C(40000000000) /* for a worker that is to end by itself */

static struct {
    bool patient;
    bool sentinel; /* the worker that was asked for last is one */
    unsigned workers, sentinels;
    struct bhi_progress progress; /* of that worker, for the fault |spawned| */
} zygote;

WRAP(void, bhi_oom_score_open, struct bhi_oom_score *score) {
    __real_bhi_oom_score_open(score);
    bhi_faults_init();
}

WRAP(int, bhi_orphan_prepare, int go, unsigned limit_ms, struct bhi_error *failure) {
    zygote.patient = lies(farewell);
    return __real_bhi_orphan_prepare(
        go, zygote.patient ? 2 * (unsigned)(PATIENCE_NS / 1000000) : limit_ms, failure);
}

WRAP(uint64_t, bhi_deadline_ns, uint64_t timeout_ns) {
    const bool farewell = timeout_ns == BHI_FAREWELL_MS * UINT64_C(1000000);
    return __real_bhi_deadline_ns(zygote.patient && farewell ? PATIENCE_NS : timeout_ns);
}

WRAP(int, bhi_fdpass_recv_message, int socket, enum bhi_direction direction,
     struct bhi_message *out, int fds[BHI_FDPASS_MAX], int flags, char *why, size_t why_size) {
    const int r = __real_bhi_fdpass_recv_message(socket, direction, out, fds, flags, why, why_size);
    if (r == 1 && out->type == BHI_MSG_SPAWN) {
        zygote.sentinel = out->spawn.kind == BHI_WORKER_SENTINEL;
        passes(fork_request);
        if (bhi_faults_named(BHI_AT_spawned)) {
            (void)bhi_progress_map(&zygote.progress, fds[BHI_SPAWN_PROGRESS],
                                   out->spawn.progress_bytes);
        }
    }
    return r;
}

WRAP(void, bhi_oom_score_raise, const struct bhi_oom_score *score) {
    zygote.workers += !zygote.sentinel;
    zygote.sentinels += zygote.sentinel;
    passes(before_fork);
    __real_bhi_oom_score_raise(score);
}

/* Waits, bounded, until the worker sleeps after its `ready`, which so comes before our message. */
static void be_late(void) {
    const uint64_t end = bhi_deadline_ns(PATIENCE_NS);
    while (zygote.progress.header && atomic_load(&zygote.progress.header->sleeping) == 0 &&
           bhi_now_ns() < end) {
        sched_yield();
    }
}

WRAP(int, bhi_fdpass_send_message, int socket, const struct bhi_message *message, const int *fds,
     size_t fd_count) {
    if (message->type == BHI_MSG_SPAWNED) {
        passes(after_fork);
        if (lies(spawned)) {
            be_late();
        }
        if (zygote.progress.header) {
            bhi_progress_unmap(&zygote.progress);
            zygote.progress.header = NULL;
        }
    } else if (message->type == BHI_MSG_EXITED) {
        passes(exit_report);
    }
    return lies(say) ? -EPIPE : __real_bhi_fdpass_send_message(socket, message, fds, fd_count);
}

WRAP(int, waitid, idtype_t which, id_t id, siginfo_t *info, int options) {
    if (which == P_PID && options == (WEXITED | WNOHANG)) { /* it was told before */
        passes(reap);
    }
    return __real_waitid(which, id, info, options);
}

WRAP(void, bhi_title_set, const char *name, const char *line) {
    bhi_faults.tracer |= strcmp(name, "bh-tracer") == 0;
    __real_bhi_title_set(name, line);
}

/* -- a worker starts -------------------------------------------------------------------------- */

static int refuse(struct bhi_error *failure) {
    return BHI_ERROR(failure, BH_REASON_STEP, "do an injected fault", .sys_errno = EPERM);
}

WRAP(_Noreturn void, bhi_worker_run, struct bhi_worker_config *config) {
    bhi_faults.worker =
        zygote.sentinel ? BHI_SENTINEL_ORDINAL + zygote.sentinels - 1 : zygote.workers;
    __real_bhi_worker_run(config);
}

WRAP(void, bhi_progress_step, struct bhi_progress *progress, enum bhi_step step) {
    bhi_faults.progress = progress;
    __real_bhi_progress_step(progress, step);
}

WRAP(int, bhi_sandbox_enter, struct bhi_sandbox *sandbox, struct bhi_error *failure) {
    return lies(sandbox) ? refuse(failure) : __real_bhi_sandbox_enter(sandbox, failure);
}

WRAP(int, bhi_sandbox_capabilities, struct bhi_error *failure) {
    return lies(capabilities) ? 0 : __real_bhi_sandbox_capabilities(failure);
}

WRAP(int, bhi_channel_accept, struct bhi_channel *channel, int listener) {
    const int error = lies(connect) ? -ECONNREFUSED : __real_bhi_channel_accept(channel, listener);
    bhi_faults.channel = error == 0 ? channel : NULL;
    return error;
}

WRAP(int, bhi_sandbox_filter, struct bhi_sandbox *sandbox, enum bhi_filter filter,
     struct bhi_error *failure) {
    return filter == BHI_FILTER_STEADY && lies(lock_down)
               ? refuse(failure)
               : __real_bhi_sandbox_filter(sandbox, filter, failure);
}

WRAP(int, bhi_session_run, struct bhi_session *session, uint64_t layers) {
    passes(ready);
    return __real_bhi_session_run(session, layers);
}

/* -- a driver on the processor that poses as a GPU's ------------------------------------------ */

/* What exporting and importing memory needs. */
static const struct bhi_seccomp_rule posing[] = {
    BHI_ALLOW1(sendmsg, BHI_INT(0, BHI_FDPASS_DESCRIPTOR)),
    BHI_ALLOW1(memfd_create, BHI_INT(1, MFD_CLOEXEC | MFD_ALLOW_SEALING)),
    BHI_ALLOW1(ftruncate, BHI_MOST(1, BHI_DRIVER_FILE_MOST)),
    BHI_ALLOW1(fcntl, BHI_INT(1, F_ADD_SEALS)),
    BHI_ALLOW(dup),
    BHI_ALLOW(lseek),
    BHI_ALLOW(read),
    BHI_END_OF_RULES,
};

static int allow(scmp_filter_ctx context, const struct bhi_seccomp_rule *rules) {
    int r = 0;
    for (; rules->syscall != BHI_RULES_END && r == 0; rules++) {
        r = seccomp_rule_add_array(context, SCMP_ACT_ALLOW, rules->syscall, rules->arg_count,
                                   rules->args);
    }
    return r;
}

/* The last thing before the filter gets its rules. These come first: the driver's answer some of the
 * same calls with an errno. */
WRAP(int, seccomp_attr_set, scmp_filter_ctx context, enum scmp_filter_attr attribute,
     uint32_t value) {
    const uint64_t self = (uint64_t)getpid();
    const struct bhi_seccomp_rule signals[] = {
        /* for the actions kill and stop */
        BHI_ALLOW2(kill, BHI_INT(0, self), BHI_INT(1, SIGKILL)),
        BHI_ALLOW2(kill, BHI_INT(0, self), BHI_INT(1, SIGSTOP)),
        BHI_END_OF_RULES,
    };
    int r = __real_seccomp_attr_set(context, attribute, value);
    if (attribute == SCMP_FLTATR_CTL_OPTIMIZE && r == 0) {
        r = lies(poses_as_gpu) ? allow(context, posing) : 0;
        r = r == 0 ? allow(context, signals) : r;
    }
    return r;
}

WRAP(int, bhi_sandbox_judge, const struct bhi_judge *judge, enum bhi_filter filter, int number,
     const uint64_t args[6]) {
    for (const struct bhi_seccomp_rule *rule = posing; rule->syscall != BHI_RULES_END; rule++) {
        const struct scmp_arg_cmp *is = &rule->args[0];
        const uint64_t value = args[is->arg];
        const bool matches =
            rule->arg_count == 0 ||
            (is->op == SCMP_CMP_LE ? value <= is->datum_a : (value & is->datum_a) == is->datum_b);
        if (rule->syscall == number && matches && lies(poses_as_gpu)) {
            return 0;
        }
    }
    return __real_bhi_sandbox_judge(judge, filter, number, args);
}

/* A driver on the processor keeps a descriptor open for each memory that it has exported or
 * imported. */
WRAP(int, bhi_sandbox_rlimits, const struct bhi_driver *driver, uint64_t memory_limit,
     bool *out_memory, struct bhi_error *failure) {
    struct bhi_driver_info info = *driver->info;
    struct bhi_driver posed = *driver;
    posed.info = &info;
    if (lies(poses_as_gpu)) {
        info.limits.descriptors = 2048;
    }
    return __real_bhi_sandbox_rlimits(&posed, memory_limit, out_memory, failure);
}

/* -- memory ----------------------------------------------------------------------------------- */

/* The worker's allocator (worker/process/alloc.c) gets it from these. A sanitizer has its own. */
#if !BHI_SANITIZED
WRAP(void *, __libc_malloc, size_t size) {
    return call_fails(alloc) ? NULL : __real___libc_malloc(size);
}

WRAP(void *, __libc_calloc, size_t count, size_t size) {
    return call_fails(alloc) ? NULL : __real___libc_calloc(count, size);
}

WRAP(void *, __libc_realloc, void *old, size_t size) {
    return call_fails(alloc) ? NULL : __real___libc_realloc(old, size);
}

WRAP(void *, __libc_memalign, size_t alignment, size_t size) {
    return call_fails(alloc) ? NULL : __real___libc_memalign(alignment, size);
}
#endif

/* mmap of the allocator. */
WRAP(long, syscall, long number, ...) {
    va_list list;
    va_start(list, number);
    long a[6];
    for (size_t i = 0; i < 6; i++) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    if (number == SYS_mmap && call_fails(map)) {
        return -1;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
