#include "supervisor/reactor/burial.h"
#include "base/detail.h"
#include "base/exiting.h"
#include "base/format.h"
#include "base/futex.h"
#include "base/limits.h"
#include "ipc/fdpass.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/context.h"
#include "supervisor/event/harvest.h"
#include "supervisor/reactor/control.h"
#include "supervisor/reactor/lessons.h"
#include "supervisor/reactor/pipeline_cache.h"
#include "supervisor/reactor/sentinel.h"
#include "supervisor/reactor/spares.h"
#include "supervisor/reactor/watch.h"
#include "supervisor/stream/placement.h"
#include "supervisor/stream/stream.h"
#include "supervisor/stream/tenant.h"
#include "supervisor/worker/proc_status.h"
#include "supervisor/worker/zygote.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define NS_PER_S 1000000000ull
#define LATE_NS  (2000ull * 1000000)  /* a guarded kernel, however large, has ended long before */
#define RETRY_NS (2ull * 1000000)     /* pause before a full socket is tried again */
#define HOLD_NS  (30ull * 1000000000) /* how long an obituary waits for a trace */

/* -- the obituary: what killed it. The core decides what that means for each of its submissions
 * (core/worker_death.c). ------------------------------------------------------------------------- */

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
    const uint64_t limit_s = bhi_limit_of_workers(RLIMIT_CPU),
                   used_ns = worker->core.life.limited_ns;
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
    if (worker->core.life.kill != BHI_KILL_NONE && signal == SIGKILL) {
        return BHI_CAUSE_OWN; /* by the supervisor, when nothing of it ran */
    }
    const char *who = " from outside: a kernel cannot do that";
    enum bhi_cause cause = BHI_CAUSE_OUTSIDE;
    if (used_its_time(worker)) {
        bhi_format(message + used, size - (size_t)used,
                   ": the host allows a process %llu s of processor time (raise ulimit -t)",
                   (unsigned long long)bhi_limit_of_workers(RLIMIT_CPU));
        return bhi_worker_served(worker) ? cause : BHI_CAUSE_DOUBTFUL; /* each start ends so */
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
    const struct bhi_life *life = &worker->core.life;
    outcome->signal = bhi_life_signal(life);
    if (life->exit_kind == CLD_EXITED) {
        outcome->exit_code = life->exit_status;
    }
    bool killed = outcome->signal == SIGKILL || !life->exit_kind;
    const struct bhi_zygote_trace *trace = &worker->zygote->trace;
    if (life->kill == BHI_KILL_PROTOCOL) {
        outcome->status = BH_PROTOCOL;
        outcome->reason = life->kill_reason;
        bhi_format(message, size, "worker %d broke the protocol: %s", pid, life->kill_text);
    } else if (life->kill == BHI_KILL_LOST) {
        outcome->status = BH_DEVICE_LOST;
        bhi_format(message, size, "the device of worker %d was lost", pid);
    } else if (life->kill == BHI_KILL_DEADLINE && killed) {
        outcome->status = BH_DEADLINE;
        bhi_format(message, size, "%s; worker %d was killed", life->kill_text, pid);
    } else if (life->kill == BHI_KILL_COMPILE && killed) {
        outcome->status = BH_COMPILE_FAILED;
        outcome->reason = BH_REASON_COMPILE_DEADLINE;
        bhi_format(message, size, "%s; worker %d was killed", life->kill_text, pid);
    } else if (life->kill == BHI_KILL_CANCEL && killed) {
        outcome->status = BH_CANCELLED;
        bhi_format(message, size, "%s; worker %d was killed", life->kill_text, pid);
    } else if (worker->context->closed) {
        outcome->status = BH_CONTEXT_CLOSED;
        bhi_format(message, size, "the context was destroyed while it ran");
    } else if (bhi_signal_is_foreign(outcome->signal) && oom != BHI_OOM_LIMIT) {
        cause = judge_signal(worker, oom, outcome, message, size);
    } else if (ran_out_of_memory(worker, oom)) {
        outcome->status = BH_OUT_OF_HOST_MEMORY;
        memory_limit(worker, outcome, message, size);
    } else if (!life->exit_kind) {
        outcome->status = BH_ZYGOTE_LOST;
        bhi_format(message, size, "worker %d died with its zygote", pid);
    } else if (outcome->signal == SIGSYS) {
        outcome->status = BH_SECCOMP;
        bhi_format(message, size,
                   "worker %d was killed by SIGSYS: it made a system call that the "
                   "sandbox forbids; %.360s",
                   pid,
                   trace->line[0] ? trace->line
                   : worker->kind == BHI_WORKER_COMPILER
                       ? "its source, or one of its options, asks for it"
                       : "'bulkhead doctor --trace-driver' shows whether the driver makes "
                         "one that its table does not list");
    } else if (outcome->signal) {
        outcome->status = BH_WORKER_SIGNAL;
        bhi_format(message, size, "worker %d was killed by %s (signal %d)%s", pid,
                   bhi_signal_name(outcome->signal), outcome->signal,
                   life->exit_kind == CLD_DUMPED ? ", core dumped" : "");
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
    if (worker->core.life.given_up) {
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
    if (worker->core.life.exit_kind == CLD_EXITED && clean[0] &&
        bh_status_classify((bh_status)status) == BH_STATUS_CLASS_ENVIRON) {
        bhi_fail_why(why, "", &reason);
        return;
    }
    if (bhi_life_signal(&worker->core.life) == SIGSYS && worker->zygote->trace.line[0]) {
        /* Another try would end the same way. */
        BHI_FAIL(why, "", BH_REASON_START_SYSTEM_CALL, bhi_step_name(step),
                 .value = (uint64_t)worker->core.pid, .text = worker->zygote->trace.line);
        return;
    }
    if (worker->core.life.kill == BHI_KILL_START) {
        BHI_FAIL(why, "", BH_REASON_START_REFUSED, .text = worker->core.life.kill_text);
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
    if (worker->core.life.kill == BHI_KILL_RETIRED || death->closing ||
        (worker->core.life.kill == BHI_KILL_LEFT && !stream)) {
        return; /* as the supervisor demanded, or of no stream any more */
    }
    bool unavailable =
        stream && stream->core.state == BHI_STREAM_UNAVAILABLE &&
        worker->core.life.kill != BHI_KILL_LEFT; /* what came later is not its doing */
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
    const uint64_t exited_ns = worker->core.life.exited_ns;
    const bool late = set_ns && exited_ns > set_ns && exited_ns - set_ns >= LATE_NS;
    return late ? exited_ns - set_ns : 0;
}

/* Charges a late end to the tenant of |stream|. Over the budget, its streams without a worker
 * become UNAVAILABLE. A stream that has a worker keeps it, and its submissions are refused. */
static void charge_tenant(struct bh_stream *stream, uint64_t took_ns) {
    bh_context *context = stream->context;
    bhi_tenant_lost_late(stream->owner, stream->core.name, took_ns);
    uint64_t until_ns;
    const bh_detail *trouble = bhi_tenant_trouble(stream->owner, &until_ns);
    if (!trouble) {
        return;
    }
    bhi_streams_hold(context);
    BHI_LIST_FOR(struct bh_stream, other, &stream->owner->streams, of_owner) {
        if (other->core.state == BHI_STREAM_WANTING && !other->core.worker) {
            bhi_stream_unavailable(&other->core, trouble, true);
            other->core.heals_at_ns = until_ns;
        }
    }
    bhi_streams_let_go(context);
}

/* What the worker completed stays good (E11); what killed it, for the rest. |message|: its room. */
static struct bhi_death judge_death(struct bhi_worker *worker, char message[512]) {
    bhi_worker_harvest(worker);
    struct bhi_core_worker *core = &worker->core;
    struct bhi_progress_snapshot snapshot = bhi_worker_progress_snapshot(worker);
    if (bhi_worker_pretends(worker, &snapshot)) {
        snapshot.compiles = 0;
        if (core->life.kill == BHI_KILL_NONE) {
            bhi_core_worker_violation(core, BHI_PRETENDED);
        }
    }
    const bool was_running = bhi_worker_served(worker);
    struct bhi_death death = {.outcome = BHI_OUTCOME_INIT};
    bhi_core_worker_mend_text(core, &snapshot);
    death.cause = cause_of_death(worker, &death.outcome, message, 512);
    death.snapshot = snapshot;
    death.closing = worker->context->closed;
    if (was_running && !bhi_list_empty(&core->inflight)) {
        BHI_FAIL(&death.why, "", death.outcome.reason, .status = BH_UNAVAILABLE,
                 .said = message); /* if nobody is blamed for it */
    } else if (was_running) {
        BHI_FAIL(&death.why, "", BH_REASON_IDLE_DEATH, .value = (uint64_t)core->pid,
                 .text = core->life.kill_text[0] ? core->life.kill_text : message);
    } else {
        failed_start(worker, &death.why);
    }
    death.others_would_fail =
        !was_running && (death.why.status == BH_NO_DEVICE || death.why.status == BH_UNSUPPORTED);
    return death;
}

static void count_death(const struct bhi_worker *worker, bh_status why) {
    worker->context->counts.deaths[worker->core.life.kill == BHI_KILL_RETIRED ? BH_OK : why]++;
}

/* Its death was judged when it departed: only what it could write was still its own (C3). */
static void bury_departed(struct bhi_worker *worker) {
    const struct bhi_death judged = {.outcome = BHI_OUTCOME_INIT};
    bhi_list_remove(&worker->link);
    bhi_pool_worker_died(worker);
    (void)bhi_core_worker_died(&worker->core, &judged);
    BHI_LIST_FOR(struct bh_stream, stream, &worker->context->streams, link) {
        bhi_stream_wants_pump(&stream->core); /* it may have waited for that memory */
    }
}

void bhi_worker_died(struct bhi_worker *worker, struct bhi_obituary *obituary) {
    struct bhi_core_worker *core = &worker->core;
    if (core->departed) {
        obituary->line[0] = 0; /* it has been said */
        bury_departed(worker);
        return;
    }
    char message[512];
    struct bhi_death death = judge_death(worker, message);
    const bool was_running = bhi_worker_served(worker), bound = core->stream;
    struct bh_stream *stream = bound ? bhi_stream_of(core->stream) : NULL;
    struct bh_stream *left_by = core->left_by ? bhi_stream_of(core->left_by) : NULL;
    if (stream && stream->runs_on.known && death.others_would_fail) {
        bhi_pool_give_up(worker->context, stream->runs_on.uuid); /* the device has failed */
    }
    if (bhi_lesson_died(worker, &death.outcome)) {
        BHI_FAIL(&death.why, "", BH_REASON_LESSON_DEATH, worker->lessons.name,
                 .value = (uint64_t)core->pid,
                 .text = core->life.kill_text[0] ? core->life.kill_text : message);
    }
    if (stream && !was_running && !death.closing && core->life.kill != BHI_KILL_RETIRED &&
        bhi_placement_failed(stream, &death.why, death.others_would_fail)) {
        death.others_would_fail = false;
        death.excused = true;
    }
    bhi_list_remove(&worker->link);
    count_death(worker, was_running ? death.outcome.status : death.why.status);
    bhi_worker_makes_lost(worker);
    bhi_pool_worker_died(worker);
    if (stream) {
        bhi_stream_ref(stream);
    }
    const bool blamed = bhi_core_worker_died(core, &death);
    if (stream && stream->core.state == BHI_STREAM_WANTING) {
        bhi_placement_leave(stream);
    }
    const uint64_t late_ns = late_end(worker);
    if (stream && stream->owner && late_ns && !death.closing) {
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

/* A zygote is pid 1 of its namespace, and cannot end before every process in the namespace. If one
 * of its loaders was given up, the zygote counts as gone once it was killed. */
static bool is_gone(const struct bhi_zygote *zygote) {
    return zygote->gone || (zygote->held_by_loader && zygote->state == BHI_ZYGOTE_LOST);
}

void bhi_burial_exit(struct bhi_worker *worker) {
    bhi_poller_unwatch(&worker->context->poller, worker->pidfd);
    bhi_context_lock(worker->context);
    const uint64_t now_ns = bhi_now_ns();
    bhi_life_exit(&worker->core.life, bhi_proc_limited_ns(worker->core.pid), now_ns);
    const bool served = bhi_worker_served(worker);
    bhi_context_unlock(worker->context);
    if (served) { /* while its device is held, so that closing what it has of it takes no time */
        bhi_watch_side_channel_end(worker);
    }
}

/* -- what is due --------------------------------------------------------------------------------- */

/* Returns until when the obituary of a worker that died of SIGSYS while it started waits for the
 * trace that names the system call; 0: it does not. */
static uint64_t trace_ends_ns(const struct bhi_worker *worker) {
    const struct bhi_zygote *zygote = worker->zygote;
    const struct bhi_life *life = &worker->core.life;
    const bool of_call = bhi_life_signal(life) == SIGSYS && worker->kind == BHI_WORKER_DEVICE &&
                         !bhi_life_served(life);
    return of_call && !worker->context->closed && zygote->state == BHI_ZYGOTE_READY &&
                   zygote->trace.state == BHI_TRACE_PENDING
               ? zygote->trace.deadline_ns - BHI_TRACE_NS + HOLD_NS
               : 0;
}

/* Its stream goes on as soon as the zygote has reported how it ended. */
static bool awaits_departure(const struct bhi_worker *worker) {
    const struct bhi_core_worker *core = &worker->core;
    return core->confined && core->stream && !core->life.violated && !core->life.exit_kind;
}

/* Lock held. */
static struct bhi_life_around look_around(const struct bhi_worker *worker, uint64_t now_ns) {
    const struct bhi_zygote *zygote = worker->zygote;
    const bool gone = is_gone(zygote);
    return (struct bhi_life_around){
        .zygote_lost = zygote->state == BHI_ZYGOTE_LOST,
        .zygote_gone = gone,
        .device_free = zygote->gone || (gone && zygote->bury_by_ns <= now_ns),
        .stream_left = (worker->core.left_by || awaits_departure(worker)) && !worker->awaited &&
                       !worker->context->closed,
        .obituary_at_ns = trace_ends_ns(worker),
    };
}

/* Tells the zygote, which holds the device of a worker that has ended. The worker that took over
 * its stream would wait for the release; nobody else gains by waiting. False: try again. */
static bool release_device(struct bhi_worker *worker, uint64_t now_ns) {
    struct bhi_message message = {.type = BHI_MSG_RELEASE};
    message.release.worker = worker->id;
    if (bhi_fdpass_send_message(worker->zygote->socket, &message, NULL, 0) == -EAGAIN) {
        return false;
    }
    (void)bhi_life_step(&worker->core.life, BHI_LIFE_RELEASE, now_ns);
    return true;
}

/* A dying worker closes its sockets first. A worker that lives on without them gets no more
 * messages, and its submissions could wait for one for ever. */
static void look_at_silent(struct bhi_worker *worker, uint64_t now_ns) {
    if (bhi_is_exiting(&worker->place)) { /* a GPU's driver delays its end */
        (void)bhi_life_step(&worker->core.life, BHI_LIFE_SEEN, now_ns);
    } else {
        bhi_core_worker_kill(&worker->core, BHI_KILL_PROTOCOL, 0, "it has closed its sockets");
    }
}

/* Returns false if it could not be done yet. Lock held. */
static bool act(struct bhi_worker *worker, enum bhi_life_act what, uint64_t now_ns) {
    switch (what) {
    case BHI_DO_NOTHING:
    case BHI_DO_KILL: /* bhi_core_worker_kill does */
        break;
    case BHI_DO_END_START:
        bhi_core_worker_kill(&worker->core, BHI_KILL_START, 0,
                             "worker %d was not ready in time (step %s)", worker->core.pid,
                             bhi_step_name(atomic_load(&worker->progress.header->step)));
        break;
    case BHI_DO_LOOK:
        look_at_silent(worker, now_ns);
        break;
    case BHI_DO_RELEASE:
        return release_device(worker, now_ns);
    case BHI_DO_GIVE_UP:
        /* A loader can hang in a system call on a file, where not even SIGKILL ends it. Its
         * deadline, a cancel, and the loads behind it do not wait for its end. A worker with a
         * device is never given up, because the device may go on writing. */
        worker->zygote->held_by_loader = true;
        break;
    }
    return true;
}

/* Does what is due. Returns true if the worker is to be buried. Lock held. */
static bool is_over(struct bhi_worker *worker, uint64_t now_ns, uint64_t *look_again) {
    const struct bhi_life_around around = look_around(worker, now_ns);
    for (;;) {
        uint64_t again_ns;
        const enum bhi_life_event event =
            bhi_life_due(&worker->core.life, &around, now_ns, &again_ns);
        if (event == BHI_LIFE_BURY) {
            return true;
        }
        const bool done = event != BHI_LIFE_NOTHING &&
                          act(worker, bhi_life_step(&worker->core.life, event, now_ns), now_ns);
        if (!done) {
            *look_again = bhi_earlier_ns(*look_again,
                                         event == BHI_LIFE_NOTHING ? again_ns : now_ns + RETRY_NS);
            return false;
        }
    }
}

/* -- a stream goes on ----------------------------------------------------------------------------- */

/* What it completed counts first (E11). A request for device memory is work, too: a worker that was
 * told to clear some may still do so. After the loss of a device nobody knows what that still does.
 * The death of a zygote is judged by the burial. */
static bool may_leave(struct bhi_worker *worker) {
    const struct bhi_life *life = &worker->core.life;
    if (worker->kind != BHI_WORKER_DEVICE || !bhi_life_served(life) || !bhi_life_is_dying(life)) {
        return false;
    }
    bhi_worker_harvest(worker);
    return bhi_core_worker_may_leave(&worker->core) && bhi_list_empty(&worker->makes) &&
           life->loss == BHI_LOSS_NONE && worker->zygote->state == BHI_ZYGOTE_READY;
}

static void leave(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    struct bh_stream *stream = bhi_stream_of(worker->core.stream);
    bh_detail why;
    BHI_FAIL(&why, "", BH_REASON_IDLE_DEATH, .value = (uint64_t)worker->core.pid);
    bhi_core_worker_leave(&worker->core, &why);
    bhi_placement_leave(stream);
    bhi_spares_make_way(context, bhi_now_ns());
    bhi_context_say(context, BH_LOG_DEBUG, "stream %s goes on without worker %d, which is dying",
                    stream->core.name, worker->core.pid);
    bhi_worker_release(worker); /* the stream's reference; the context has another one */
}

/* Its process has ended, and what its device still does is bounded by rule C1. Answers that it owes are
 * work: it may still clear memory. Host memory that it has pinned for copies is written until its device
 * is released. */
static bool may_depart(const struct bhi_worker *worker) {
    return bhi_core_worker_may_depart(&worker->core) && bhi_list_empty(&worker->makes) &&
           worker->zygote->state == BHI_ZYGOTE_READY && !worker->context->closed &&
           atomic_load(&worker->progress.markers->pinned) == 0;
}

static void depart(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    struct bh_stream *stream = bhi_stream_of(worker->core.stream);
    char message[512];
    struct bhi_obituary obituary;
    const struct bhi_death death = judge_death(worker, message);
    count_death(worker, death.outcome.status);
    const bool blamed = bhi_core_worker_depart(&worker->core, &death);
    if (stream->core.state == BHI_STREAM_WANTING) {
        bhi_placement_leave(stream);
    }
    bhi_spares_make_way(context, bhi_now_ns());
    write_obituary(worker, stream, &death, blamed, &obituary);
    if (obituary.line[0]) {
        bhi_context_say(context, obituary.level, "%s", obituary.line);
    }
    bhi_worker_release(worker); /* the stream's reference; the context has another one */
}

bool bhi_leave_turn(bh_context *context) {
    bool any = false;
    bhi_context_lock(context);
    BHI_LIST_FOR(struct bhi_worker, worker, &context->workers, link) {
        struct bh_stream *stream = worker->core.stream ? bhi_stream_of(worker->core.stream) : NULL;
        if (!stream) {
            continue;
        }
        bhi_stream_ref(stream); /* a harvest may drop the last submission */
        const bool leaves = may_leave(worker), departs = !leaves && may_depart(worker);
        if (leaves) {
            leave(worker);
        } else if (departs) {
            depart(worker);
        }
        any |= leaves || departs;
        bhi_stream_unref_locked(stream);
    }
    bhi_context_pump_unlock(context);
    return any;
}

/* -- the burial ----------------------------------------------------------------------------------- */

static void bury_worker(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    /* Its last messages may say why it could not start. */
    bhi_control_receive(worker);
    bhi_watch_side_channel_end(worker);
    bhi_context_lock(context);
    bhi_sentinel_worker_gone(worker);
    bhi_spares_worker_gone(worker, bhi_now_ns());
    struct bh_stream *stream = worker->core.stream ? bhi_stream_of(worker->core.stream) : NULL;
    if (stream && !bhi_worker_served(worker) && worker->device_count) {
        free(stream->seen_devices);
        stream->seen_devices = worker->devices;
        stream->seen_device_count = worker->device_count;
        worker->devices = NULL;
        worker->device_count = 0;
    }
    struct bhi_obituary obituary;
    bhi_worker_died(worker, &obituary);
    const struct bhi_core_worker *core = &worker->core;
    bool told = core->life.kill == BHI_KILL_RETIRED || core->life.kill == BHI_KILL_DEADLINE ||
                core->life.kill == BHI_KILL_CANCEL;
    bool killed = core->life.exit_kind ? bhi_life_signal(&core->life) == SIGKILL
                                       : core->life.exited_ns != 0; /* it ended with its zygote */
    bhi_pipeline_cache_buried(worker, told && killed && !core->life.violated);
    bhi_context_pump_unlock(context);
    if (obituary.line[0]) {
        bhi_context_log(context, obituary.level, "%s", obituary.line);
    }
    bhi_poller_unwatch(&context->poller, worker->pidfd);
    bhi_poller_unwatch(&context->poller, worker->doorbell);
    bhi_poller_unwatch(&context->poller, worker->channel.fd);
    bhi_channel_close(&worker->channel);
    if (worker->memory_limit) {
        bhi_zygote_remove_cgroup(worker->zygote, worker->id);
    }
    bhi_worker_release(worker);
}

uint64_t bhi_burial_turn(bh_context *context) {
    for (;;) {
        uint64_t now_ns = bhi_now_ns(), look_again = BH_FOREVER;
        struct bhi_worker *dead = NULL;
        bhi_context_lock(context);
        BHI_LIST_FOR(struct bhi_worker, worker, &context->workers, link) {
            if (is_over(worker, now_ns, &look_again)) {
                dead = worker;
                break;
            }
        }
        bhi_context_pump_unlock(context);
        if (!dead) {
            return look_again;
        }
        bury_worker(dead);
    }
}

static bool has_workers(bh_context *context, const struct bhi_zygote *zygote) {
    bool found = false;
    bhi_context_lock(context);
    BHI_LIST_EACH(node, &context->workers)
    found = found || BHI_CONTAINER(node, struct bhi_worker, link)->zygote == zygote;
    bhi_context_unlock(context);
    return found;
}

void bhi_burial_zygotes(bh_context *context) {
    /* Only this thread changes the list. */
    BHI_LIST_FOR_SAFE(struct bhi_zygote, zygote, &context->zygotes, link) {
        /* The warden reaps its zygote, then ends. */
        bool over = zygote->warden_pidfd < 0 || (is_gone(zygote) && zygote->warden_gone);
        if (zygote->state != BHI_ZYGOTE_LOST || !over || has_workers(context, zygote)) {
            continue;
        }
        bhi_poller_unwatch(&context->poller, zygote->socket);
        bhi_poller_unwatch(&context->poller, zygote->pidfd);
        bhi_poller_unwatch(&context->poller, zygote->warden_pidfd);
        bhi_zygote_bury(zygote);
        bhi_context_lock(context);
        bhi_list_remove(&zygote->link);
        context->counts.zygotes_lost++;
        bhi_context_unlock(context);
        bhi_zygote_release(zygote);
    }
}

void bhi_burial_give_up(bh_context *context) {
    while (!bhi_list_empty(&context->workers)) {
        bury_worker(BHI_CONTAINER(context->workers.next, struct bhi_worker, link));
    }
    BHI_LIST_FOR(struct bhi_zygote, zygote, &context->zygotes, link) {
        zygote->held_by_loader = zygote->warden_gone = true;
    }
    bhi_burial_zygotes(context);
}
