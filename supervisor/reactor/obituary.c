/* The obituary of a worker: what killed it. The core decides what that means for each of its
 * submissions (core/worker_death.c). */
#include "supervisor/reactor/obituary.h"
#include "base/detail.h"
#include "base/format.h"
#include "base/futex.h"
#include "base/limits.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/event/harvest.h"
#include "supervisor/reactor/lessons.h"
#include "supervisor/stream/placement.h"
#include "supervisor/stream/stream.h"
#include "supervisor/stream/tenant.h"
#include "supervisor/worker/zygote.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define NS_PER_S 1000000000ull
#define LATE_NS  (2000ull * 1000000) /* a guarded kernel, however large, has ended long before */

static bool ran_out_of_memory(const struct bhi_worker *worker, enum bhi_oom oom) {
    if (oom == BHI_OOM_LIMIT) {
        return true;
    }
    /* Under RLIMIT_DATA an allocation fails, and the driver decides what follows: an abort, a null
     * pointer, an exit. If an allocation was refused since the last harvest, that is the cause. */
    return atomic_load(&worker->progress.header->refused_allocations) > worker->refused_seen;
}

/* Names the limit that the worker has exceeded. A worker has the host's hard limit on the address
 * space: if that is lower, it was reached first. */
static void memory_limit(const struct bhi_worker *worker, struct bhi_outcome *outcome,
                         char *message, size_t size) {
    const uint64_t space = bhi_limit_of_workers(RLIMIT_AS), limit = worker->memory_limit;
    const bool inherited = space != UINT64_MAX && (!limit || space < limit);
    outcome->limit = inherited ? space : limit;
    outcome->reason = inherited ? BH_REASON_ADDRESS_SPACE : BH_REASON_MEMORY_LIMIT;
    bhi_format(message, size,
               inherited ? "worker %d exceeded the %llu MiB of address space that the host "
                           "leaves it (raise ulimit -v)"
                         : "worker %d exceeded its memory limit of %llu MiB",
               worker->core.pid, (unsigned long long)(outcome->limit >> 20));
}

/* Returns true if the worker may have used as much processor time as the host's hard limit allows.
 * Linux sends SIGKILL then. */
static bool used_its_time(const struct bhi_worker *worker) {
    const uint64_t limit_s = bhi_limit_of_workers(RLIMIT_CPU), used_ns = worker->limited_ns;
    return limit_s < UINT64_MAX / NS_PER_S &&
           (!used_ns || used_ns + NS_PER_S / 10 >= limit_s * NS_PER_S);
}

/* A signal that the worker cannot send itself has ended it. Linux sends SIGKILL for memory, too: to
 * that a worker below its own limit may have contributed. Where it has no memory cgroup of its own,
 * the machine's count tells. */
static enum bhi_cause judge_signal(const struct bhi_worker *worker, enum bhi_oom oom,
                                   struct bhi_outcome *outcome, char *message, size_t size) {
    const int signal = outcome->signal;
    int used = snprintf(message, size, "worker %d was killed by %s (signal %d)", worker->core.pid,
                        bhi_signal_name(signal), signal);
    outcome->status = BH_WORKER_SIGNAL;
    if (worker->core.kill != BHI_KILL_NONE && signal == SIGKILL) {
        return BHI_CAUSE_OWN; /* by the supervisor, when nothing of it ran */
    }
    const char *who = " from outside: a kernel cannot do that";
    enum bhi_cause cause = BHI_CAUSE_OUTSIDE;
    if (used_its_time(worker)) {
        bhi_format(message + used, size - (size_t)used,
                   ": the host allows a process %llu s of processor time (raise ulimit -t)",
                   (unsigned long long)bhi_limit_of_workers(RLIMIT_CPU));
        return cause;
    }
    if (signal == SIGKILL && oom != BHI_OOM_OTHERS && !bhi_worker_has_cgroup(worker)) {
        const uint64_t kills = bhi_oom_kills();
        if (kills == UINT64_MAX) {
            cause = BHI_CAUSE_DOUBTFUL;
            who = ": by somebody else, or by Linux because memory ran out";
        }
        oom = kills != worker->oom_kills ? BHI_OOM_OTHERS : oom;
    }
    if (signal == SIGKILL && oom == BHI_OOM_OTHERS && cause == BHI_CAUSE_OUTSIDE) {
        cause = BHI_CAUSE_DOUBTFUL;
        who = ": the machine, or a memory cgroup above the worker's, was out of memory; the worker "
              "had not reached its own limit";
    }
    bhi_format(message + used, size - (size_t)used, "%s", who);
    return cause;
}

static enum bhi_cause judge_cause(const struct bhi_worker *worker, struct bhi_outcome *outcome,
                                  char *message, size_t size) {
    const enum bhi_oom oom = bhi_cgroup_oom(&worker->zygote->cgroup, worker->id);
    enum bhi_cause cause = BHI_CAUSE_OWN;
    int pid = worker->core.pid;
    outcome->worker_pid = pid;
    outcome->device = worker->core.device;
    outcome->message = message;
    if (worker->exit_known && worker->exit_code_kind != CLD_EXITED) {
        outcome->signal = worker->exit_status;
    } else if (worker->exit_known) {
        outcome->exit_code = worker->exit_status;
    }
    bool killed = outcome->signal == SIGKILL || !worker->exit_known;
    const struct bhi_zygote_trace *trace = &worker->zygote->trace;
    if (worker->core.kill == BHI_KILL_PROTOCOL) {
        outcome->status = BH_PROTOCOL;
        outcome->reason = worker->core.kill_reason;
        bhi_format(message, size, "worker %d broke the protocol: %s", pid, worker->core.kill_text);
    } else if (worker->core.kill == BHI_KILL_LOST) {
        outcome->status = BH_DEVICE_LOST;
        bhi_format(message, size, "the device of worker %d was lost", pid);
    } else if (worker->core.kill == BHI_KILL_DEADLINE && killed) {
        outcome->status = BH_DEADLINE;
        bhi_format(message, size, "%s; worker %d was killed", worker->core.kill_text, pid);
    } else if (worker->core.kill == BHI_KILL_COMPILE && killed) {
        outcome->status = BH_COMPILE_FAILED;
        outcome->reason = BH_REASON_COMPILE_DEADLINE;
        bhi_format(message, size, "%s; worker %d was killed", worker->core.kill_text, pid);
    } else if (worker->core.kill == BHI_KILL_CANCEL && killed) {
        outcome->status = BH_CANCELLED;
        bhi_format(message, size, "%s; worker %d was killed", worker->core.kill_text, pid);
    } else if (worker->context->closed) {
        outcome->status = BH_CONTEXT_CLOSED;
        bhi_format(message, size, "the context was destroyed while it ran");
    } else if (bhi_signal_is_foreign(outcome->signal) && oom != BHI_OOM_LIMIT) {
        cause = judge_signal(worker, oom, outcome, message, size);
    } else if (ran_out_of_memory(worker, oom)) {
        outcome->status = BH_OUT_OF_HOST_MEMORY;
        memory_limit(worker, outcome, message, size);
    } else if (!worker->exit_known) {
        outcome->status = BH_ZYGOTE_LOST;
        bhi_format(message, size, "worker %d died with its zygote", pid);
    } else if (outcome->signal == SIGSYS) {
        outcome->status = BH_SECCOMP;
        bhi_format(message, size,
                   "worker %d was killed by SIGSYS: it made a system call that the "
                   "sandbox forbids; %.360s",
                   pid,
                   trace->line[0]
                       ? trace->line
                       : "'bulkhead doctor --trace-driver' shows whether the driver makes "
                         "one that its table does not list");
    } else if (outcome->signal) {
        outcome->status = BH_WORKER_SIGNAL;
        bhi_format(message, size, "worker %d was killed by %s (signal %d)%s", pid,
                   bhi_signal_name(outcome->signal), outcome->signal,
                   worker->exit_code_kind == CLD_DUMPED ? ", core dumped" : "");
    } else {
        outcome->status = BH_WORKER_EXIT;
        bhi_format(message, size, "worker %d exited with code %d", pid, outcome->exit_code);
    }
    return cause;
}

/* Describes how the worker died, for the submission that was running or for a start that failed. */
static enum bhi_cause cause_of_death(const struct bhi_worker *worker, struct bhi_outcome *outcome,
                                     char *message, size_t size) {
    const enum bhi_cause cause = judge_cause(worker, outcome, message, size);
    size_t used = strlen(message);
    if (worker->kill_failed) {
        bhi_format(message + used, size - used,
                   "; SIGKILL did not end the process: the kernel still holds it");
    }
    return cause;
}

/* Describes why the worker never became ready. */
static void failed_start(const struct bhi_worker *worker, bh_detail *why) {
    const struct bhi_progress_header *header = worker->progress.header;
    char message[256], said[512], clean[384] = "";
    struct bhi_outcome outcome = BHI_OUTCOME_INIT;
    struct bhi_told told = header->step_told;    /* copied once, as what follows is; it may be */
    const uint32_t status = header->step_status; /* anything */
    const uint32_t step = atomic_load(&header->step);
    struct bhi_why reason;
    if (bhi_told_read(&told, status, &reason)) {
        bhi_sentence(clean, sizeof clean, &reason);
    }
    if (worker->exit_known && worker->exit_code_kind == CLD_EXITED && clean[0] &&
        bh_status_classify((bh_status)status) == BH_STATUS_CLASS_ENVIRON) {
        bhi_fail_why(why, "", &reason);
        return;
    }
    if (worker->exit_known && worker->exit_code_kind != CLD_EXITED &&
        worker->exit_status == SIGSYS && worker->zygote->trace.line[0]) {
        /* Another try would end the same way. */
        bhi_fail(why, BH_UNSUPPORTED, 0,
                 "worker %d was killed by SIGSYS while starting (step %s): %s; report this line "
                 "with the output of 'bulkhead doctor --trace-driver'",
                 worker->core.pid, bhi_step_name(step), worker->zygote->trace.line);
        return;
    }
    if (worker->core.kill == BHI_KILL_START) {
        bhi_fail(why, BH_UNAVAILABLE, 0, "%s", worker->core.kill_text);
        return;
    }
    (void)cause_of_death(worker, &outcome, message, sizeof message);
    /* A library may abort, or report anything, where it cannot start a thread. */
    const bool threads = atomic_load(&header->refused_threads) > 0;
    bhi_format(said, sizeof said, "%s while starting (step %s)%s%s%s", message, bhi_step_name(step),
               clean[0] ? ": " : "", clean, threads ? "; it could not start a thread" : "");
    BHI_FAIL(why, "", outcome.reason, .status = BH_UNAVAILABLE, .said = said,
             .sys_errno = threads ? EAGAIN : 0);
}

/* Writes the line for the host's log: what happened, and what follows for the stream. */
static void write_obituary(const struct bhi_worker *worker, const struct bh_stream *stream,
                           const struct bhi_death *death, bool blamed,
                           struct bhi_obituary *obituary) {
    obituary->line[0] = 0;
    if (worker->core.kill == BHI_KILL_RETIRED || death->closing ||
        (worker->core.kill == BHI_KILL_LEFT && !stream)) {
        return; /* as the supervisor demanded, or of no stream any more */
    }
    bool unavailable = stream && stream->core.state == BHI_STREAM_UNAVAILABLE &&
                       worker->core.kill != BHI_KILL_LEFT; /* what came later is not its doing */
    obituary->level = unavailable ? BH_LOG_ERROR : BH_LOG_WARNING;
    bhi_format(obituary->line, sizeof obituary->line, "%s%s: %s",
               stream                                ? "stream "
               : worker->kind == BHI_WORKER_SENTINEL ? "a sentinel"
                                                     : "a spare",
               stream ? stream->core.name : "",
               unavailable ? stream->core.trouble.message
               : blamed    ? death->outcome.message
                           : death->why.message);
}

/* Returns how long the device kept the worker after its abort words were set; 0: no longer than a
 * guarded kernel may. */
static uint64_t late_end(const struct bhi_worker *worker) {
    const uint64_t set_ns = worker->words.set_ns;
    const bool late = set_ns && worker->ended_ns > set_ns && worker->ended_ns - set_ns >= LATE_NS;
    return late ? worker->ended_ns - set_ns : 0;
}

/* Charges a late end to the tenant of |stream|. Over the budget, its streams without a worker
 * become UNAVAILABLE. A stream that has a worker keeps it, and its submissions are refused. */
static void charge_tenant(struct bh_stream *stream, uint64_t took_ns) {
    bh_context *context = stream->context;
    bhi_tenant_lost_late(context, stream->tenant, stream->core.name, took_ns);
    uint64_t until_ns;
    const bh_detail *trouble = bhi_tenant_trouble(context, stream->tenant, &until_ns);
    if (!trouble) {
        return;
    }
    bhi_streams_hold(context);
    BHI_LIST_EACH(node, &context->streams) {
        struct bh_stream *other = BHI_CONTAINER(node, struct bh_stream, link);
        if (other->kind == BHI_WORKER_DEVICE && strcmp(other->tenant, stream->tenant) == 0 &&
            other->core.state == BHI_STREAM_WANTING && !other->core.worker) {
            bhi_stream_unavailable(&other->core, trouble, true);
            other->core.heals_at_ns = until_ns;
        }
    }
    bhi_streams_let_go(context);
}

void bhi_worker_died(struct bhi_worker *worker, struct bhi_obituary *obituary) {
    bhi_worker_harvest(worker); /* what the worker completed stays good (E11) */
    struct bhi_core_worker *core = &worker->core;
    struct bhi_progress_snapshot snapshot = bhi_worker_progress_snapshot(worker);
    if (bhi_worker_pretends(worker, &snapshot)) {
        snapshot.compiles = 0;
        if (core->kill == BHI_KILL_NONE) {
            bhi_core_worker_violation(core, BHI_PRETENDED);
        }
    }
    bool was_running = worker->state == BHI_RUNNING, bound = core->stream;
    char message[512];
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT};
    bhi_core_worker_mend_text(core, &snapshot);
    death.cause = cause_of_death(worker, &death.outcome, message, sizeof message);
    death.snapshot = snapshot;
    death.closing = worker->context->closed;
    if (was_running && !bhi_list_empty(&core->inflight)) {
        BHI_FAIL(&death.why, "", death.outcome.reason, .status = BH_UNAVAILABLE,
                 .said = message); /* if nobody is blamed for it */
    } else if (was_running) {
        bhi_fail(&death.why, BH_UNAVAILABLE, 0, "worker %d died while it was idle: %s", core->pid,
                 core->kill_text[0] ? core->kill_text : message);
    } else {
        failed_start(worker, &death.why);
    }
    death.others_would_fail =
        !was_running && (death.why.status == BH_NO_DEVICE || death.why.status == BH_UNSUPPORTED);
    /* A zygote's death is no stream's fault: the stream gets another worker. A zygote that dies
     * whenever it starts a worker does count. Otherwise the starts would never end. */
    death.excused = was_running && worker->zygote->state == BHI_ZYGOTE_LOST;
    struct bh_stream *stream = bound ? bhi_stream_of(core->stream) : NULL;
    struct bh_stream *left_by = core->left_by ? bhi_stream_of(core->left_by) : NULL;
    if (stream && stream->runs_on.known && death.others_would_fail) {
        bhi_pool_give_up(worker->context, stream->runs_on.uuid); /* the device has failed */
    }
    if (bhi_lesson_died(worker, &death.outcome)) {
        bhi_fail(&death.why, BH_UNAVAILABLE, 0,
                 "worker %d died while it compiled kernel \"%s\" before it is needed: %s",
                 core->pid, worker->lessons.name, core->kill_text[0] ? core->kill_text : message);
    }
    if (stream && !was_running && !death.closing && core->kill != BHI_KILL_RETIRED &&
        bhi_placement_failed(stream, &death.why, death.others_would_fail)) {
        death.others_would_fail = false;
        death.excused = true;
    }
    worker->state = BHI_DEAD;
    bhi_list_remove(&worker->link);
    bhi_worker_makes_lost(worker);
    bhi_pool_worker_died(worker);
    if (stream) {
        bhi_stream_ref(stream);
    }
    bool blamed = bhi_core_worker_died(core, &death);
    if (stream && stream->core.state == BHI_STREAM_WANTING) {
        bhi_placement_leave(stream);
    }
    const uint64_t late_ns = late_end(worker);
    if (stream && late_ns && !death.closing) {
        charge_tenant(stream, late_ns);
    }
    write_obituary(worker, left_by ? left_by : stream, &death, blamed, obituary);
    if (bound) {
        bhi_worker_release(worker); /* the stream's reference */
    }
    if (stream) {
        bhi_stream_unref_locked(stream);
    }
}
