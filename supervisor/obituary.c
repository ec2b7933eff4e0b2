/* The obituary of a worker: what killed it, and what that means for each submission that it had. */
#include "check.h"
#include "commands.h"
#include "detail.h"
#include "event.h"
#include "futex.h"
#include "worker_proc.h"
#include "zygote.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static bool ran_out_of_memory(const struct bhi_worker *worker) {
    if (bhi_cgroup_oom_kills(&worker->zygote->cgroup, worker->id) > 0)
        return true;
    /* With RLIMIT_DATA an allocation fails, and what follows is up to the driver: an abort, a null
     * pointer, an exit. A refusal since the last completed submission tells why. */
    return atomic_load(&worker->progress.header->refused_allocations) > worker->refused_seen;
}

/* How it died, for the submission that was running (or for a start that failed). */
static void cause_of_death(const struct bhi_worker *worker, struct bhi_outcome *outcome,
                           char *message, size_t size) {
    int pid = worker->pid;
    outcome->worker_pid = pid;
    outcome->message = message;
    if (worker->exit_known && worker->exit_code_kind != CLD_EXITED)
        outcome->signal = worker->exit_status;
    else if (worker->exit_known)
        outcome->exit_code = worker->exit_status;
    bool killed = outcome->signal == SIGKILL || !worker->exit_known;
    if (worker->kill == BHI_KILL_PROTOCOL) {
        outcome->status = BH_PROTOCOL;
        snprintf(message, size, "worker %d broke the protocol: %s", pid, worker->kill_text);
    } else if (worker->kill == BHI_KILL_DEADLINE && killed) {
        outcome->status = BH_DEADLINE;
        snprintf(message, size, "%s; worker %d was killed", worker->kill_text, pid);
    } else if (worker->kill == BHI_KILL_CANCEL && killed) {
        outcome->status = BH_CANCELLED;
        snprintf(message, size, "%s; worker %d was killed", worker->kill_text, pid);
    } else if (worker->context->closed) {
        outcome->status = BH_CONTEXT_CLOSED;
        snprintf(message, size, "the context was destroyed while it ran");
    } else if (ran_out_of_memory(worker)) {
        outcome->status = BH_OUT_OF_HOST_MEMORY;
        outcome->limit = worker->memory_limit;
        snprintf(message, size, "worker %d ran into its memory limit of %llu MiB", pid,
                 (unsigned long long)(worker->memory_limit >> 20));
    } else if (!worker->exit_known) {
        outcome->status = BH_ZYGOTE_LOST;
        snprintf(message, size, "worker %d died with its zygote", pid);
    } else if (outcome->signal == SIGSYS) {
        outcome->status = BH_SECCOMP;
        snprintf(message, size,
                 "worker %d was killed by SIGSYS: it made a system call that the "
                 "sandbox forbids",
                 pid);
    } else if (outcome->signal) {
        outcome->status = BH_WORKER_SIGNAL;
        snprintf(message, size, "worker %d was killed by %s (signal %d)%s", pid,
                 bhi_signal_name(outcome->signal), outcome->signal,
                 worker->exit_code_kind == CLD_DUMPED ? ", core dumped" : "");
    } else {
        outcome->status = BH_WORKER_EXIT;
        snprintf(message, size, "worker %d exited with code %d in mid-job", pid,
                 outcome->exit_code);
    }
}

/* Why it never became ready. */
static void failed_start(const struct bhi_worker *worker, bh_detail *why) {
    const struct bhi_progress_header *header = worker->progress.header;
    char message[256], text[BHI_FAULT_TEXT];
    struct bhi_outcome outcome = BHI_OUTCOME_INIT;
    uint32_t status = header->step_status; /* copied once; it may be any number */
    int error = header->step_error;
    uint32_t step = atomic_load(&header->step);
    memcpy(text, header->step_text, sizeof text);
    text[sizeof text - 1] = 0;
    char clean[384];
    bhi_text_sanitise(clean, sizeof clean, text, strlen(text));
    if (worker->exit_known && worker->exit_code_kind == CLD_EXITED && clean[0] &&
        bh_status_classify((bh_status)status) == BH_CLASS_ENVIRON) {
        bhi_fail(why, (bh_status)status, 0, "%s", clean); /* errno is in its words */
        why->sys_errno = error > 0 && error < 4096 ? error : 0;
        return;
    }
    if (worker->kill == BHI_KILL_START) {
        bhi_fail(why, BH_UNAVAILABLE, 0, "%s", worker->kill_text);
        return;
    }
    cause_of_death(worker, &outcome, message, sizeof message);
    bhi_fail(why, BH_UNAVAILABLE, 0, "%s while starting (step %s)%s%s", message,
             bhi_step_name(step), clean[0] ? ": " : "", clean);
}

/* Those that were never started go back to the head of the queue, in order (E13). */
static void put_back(struct bhi_worker *worker, uint64_t started) {
    struct bh_stream *stream = worker->stream;
    while (!bhi_list_empty(&worker->inflight)) {
        struct bhi_submission *last =
            BHI_CONTAINER(worker->inflight.prev, struct bhi_submission, link);
        if (last->record->seq <= started)
            break;
        /* What became certain while it was in the lane holds: it need not run for that. */
        uint32_t others;
        if (last->cancelled || bhi_submission_poisoned_by(last, &others)) {
            bhi_submission_end_unstarted(last, BH_CANCELLED, BHI_CANCELLED_UNSTARTED, 0);
            continue;
        }
        bhi_list_remove(&last->link);
        last->state = BHI_QUEUED;
        last->worker = NULL;
        bhi_list_insert_before(stream->queue.next, &last->link);
        bhi_event_turn(last->event);
    }
}

static uint64_t oldest(const struct bhi_worker *worker) {
    return BHI_CONTAINER(worker->inflight.next, struct bhi_submission, link)->record->seq;
}

/* Which of those in flight was running: the first one that the device had not finished. 0: none
 * is to blame, the one that the worker was killed for has ended before the signal came. */
static uint64_t culprit_of(const struct bhi_worker *worker, uint64_t started) {
    uint64_t first = oldest(worker);
    if (worker->kill_event) {
        const struct bhi_submission *target = NULL;
        BHI_LIST_EACH(node, &worker->inflight) {
            const struct bhi_submission *s = BHI_CONTAINER(node, struct bhi_submission, link);
            if (s->event->id == worker->kill_event)
                target = s;
        }
        if (!target)
            return 0;
        return target->record->seq;
    }
    if (worker->lied)
        return first;
    uint32_t moved =
        atomic_load(&worker->progress.markers->completed) - (uint32_t)worker->harvested;
    uint64_t running = worker->harvested + moved + 1;
    BHI_LIST_EACH(node, &worker->inflight) {
        uint64_t seq = BHI_CONTAINER(node, struct bhi_submission, link)->record->seq;
        if (seq >= running && seq <= started)
            return seq;
    }
    return first;
}

static void judge_one(struct bhi_worker *worker, struct bhi_submission *submission,
                      uint64_t culprit, uint64_t origin, uint64_t now_ns) {
    char message[512];
    struct bhi_outcome outcome = BHI_OUTCOME_INIT;
    /* Compiling runs nothing of the kernel. */
    outcome.executed = bhi_record_first(submission->record)->type == BHI_CMD_PREPARE
                           ? BH_EXECUTED_NO
                           : BH_EXECUTED_UNKNOWN;
    cause_of_death(worker, &outcome, message, sizeof message);
    if (submission->record->seq == culprit) {
        if (outcome.status == BH_DEADLINE)
            outcome.limit = submission->deadline_ns;
    } else if (outcome.status != BH_CONTEXT_CLOSED && outcome.status != BH_ZYGOTE_LOST) {
        char cause[300];
        snprintf(cause, sizeof cause, "%.299s", message);
        snprintf(message, sizeof message,
                 "its worker died of event %llu before its result "
                 "was recorded: %s",
                 (unsigned long long)(origin ? origin : worker->kill_event), cause);
        outcome.status = BH_WORKER_LOST;
        outcome.origin = origin;
    }
    outcome.started_ns = worker->head_since_ns;
    outcome.ended_ns = now_ns;
    bhi_submission_end(submission, &outcome);
}

static void judge_inflight(struct bhi_worker *worker, uint64_t culprit) {
    uint64_t origin = 0, now_ns = bhi_now_ns();
    /* The culprit comes first: it may depend on one that is lost with it, and its own fault must
     * not come back to it along that path. */
    BHI_LIST_EACH(node, &worker->inflight) {
        struct bhi_submission *s = BHI_CONTAINER(node, struct bhi_submission, link);
        if (s->record->seq == culprit) {
            origin = s->event->id;
            judge_one(worker, s, culprit, origin, now_ns);
            break;
        }
    }
    while (!bhi_list_empty(&worker->inflight))
        judge_one(worker, BHI_CONTAINER(worker->inflight.next, struct bhi_submission, link),
                  culprit, origin, now_ns);
}

void bhi_worker_died(struct bhi_worker *worker) {
    bhi_worker_harvest(worker); /* what it completed stays good (E11) */
    bool was_running = worker->state == BHI_RUNNING;
    struct bh_stream *stream = worker->stream;
    if (stream)
        atomic_fetch_add_explicit(&stream->refs, 1, memory_order_relaxed);
    bool blame = false;
    if (stream && !bhi_list_empty(&worker->inflight)) {
        /* A liar may have run whatever was in its lane: none of that runs again. */
        uint64_t started = worker->lied ? worker->published
                                        : bhi_progress_started(&worker->progress, worker->harvested,
                                                               worker->published);
        if (worker->context->closed)
            started = worker->published;
        uint64_t culprit = culprit_of(worker, started);
        if (worker->kill == BHI_KILL_DEADLINE || worker->kill == BHI_KILL_CANCEL ||
            worker->kill == BHI_KILL_PROTOCOL)
            started = started < culprit ? culprit : started;
        put_back(worker, started);
        blame = !bhi_list_empty(&worker->inflight);
        judge_inflight(worker, culprit);
    }
    worker->state = BHI_DEAD;
    bhi_list_remove(&worker->link);
    if (stream) {
        worker->stream = NULL;
        bh_detail why = {0};
        if (!was_running)
            failed_start(worker, &why);
        else if (!blame)
            bhi_fail(&why, BH_UNAVAILABLE, 0, "worker %d died while it was idle%s%s", worker->pid,
                     worker->kill_text[0] ? ": " : "", worker->kill_text);
        bh_status status = why.status;
        bool final = !was_running && (status == BH_NO_DEVICE || status == BH_UNSUPPORTED);
        /* A zygote's death is nobody's fault: the stream just gets another worker. One that dies
         * whenever it starts a worker is counted all the same, or that would never end. */
        bool excused = blame || (was_running && worker->zygote->state == BHI_ZYGOTE_LOST);
        bhi_stream_lost_worker(stream, excused, &why);
        if (final && stream->state == BHI_STREAM_WANTING)
            bhi_stream_unavailable(stream, &why);
        bhi_worker_release(worker); /* the stream's reference */
        bhi_stream_unref_locked(stream);
    }
}
