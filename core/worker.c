#include "core/worker.h"
#include "base/check.h"
#include "base/format.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SKIP_NS        (5000ull * 1000000) /* time to skip a lane full of withdrawn ones */
#define PATIENCE_NS    (3500ull * 1000000) /* of a GPU's driver: 4 s, minus a late start */
#define MARKER_LOOK_NS (5ull * 1000000)    /* least time between two looks at the marker */

void bhi_core_worker_init(struct bhi_core_worker *worker, struct bhi_core *core) {
    *worker = (struct bhi_core_worker){.core = core};
    bhi_list_init(&worker->inflight);
    bhi_life_init(&worker->life, BH_FOREVER, false);
}

void bhi_core_worker_fini(struct bhi_core_worker *worker) {
    BHI_CHECK(bhi_list_empty(&worker->inflight));
    bhi_idset_fini(&worker->withdrawn);
}

void bhi_core_worker_kill(struct bhi_core_worker *worker, enum bhi_kill reason, uint64_t event,
                          const char *format, ...) {
    if (worker->life.kill == BHI_KILL_NONE) {
        worker->life.kill = reason;
        worker->life.kill_event = event;
        va_list args;
        va_start(args, format);
        bhi_vformat(worker->life.kill_text, sizeof worker->life.kill_text, format, args);
        va_end(args);
    }
    const uint64_t now_ns = worker->core->ops->now_ns(worker->core);
    if (bhi_life_step(&worker->life, BHI_LIFE_KILL, now_ns) == BHI_DO_KILL) {
        worker->core->ops->kill(worker);
    }
}

void bhi_core_worker_violation(struct bhi_core_worker *worker, const char *what) {
    worker->life.violated = true;
    bhi_core_worker_kill(worker, BHI_KILL_PROTOCOL, 0, "%s", what);
}

/* -- the lane --------------------------------------------------------------------------------- */

static struct bhi_submission *head_of(const struct bhi_core_worker *worker) {
    return BHI_CONTAINER(worker->inflight.next, struct bhi_submission, link);
}

/* Returns when |running| must be stopped. */
static uint64_t due_ns(const struct bhi_core_worker *worker, const struct bhi_submission *running) {
    if (running->end_requested) {
        return bhi_after_ns(worker->asked_ns, worker->stream->grace_ns);
    }
    return running->cancel_requested ? 0
           : running->due_ns         ? running->due_ns
                                     : bhi_after_ns(worker->running_since_ns, running->deadline_ns);
}

/* Returns the shorter of two limits: it is not known yet whether the submission compiles or runs.
 */
static uint64_t shorter_ns(const struct bhi_core_worker *worker,
                           const struct bhi_submission *submission) {
    const uint64_t compile_ns = worker->stream->compile_deadline_ns;
    uint64_t limit_ns = submission->deadline_ns;
    if (submission->due_ns) {
        const uint64_t from_ns = submission->released_ns;
        limit_ns = submission->due_ns > from_ns ? submission->due_ns - from_ns : 1;
    }
    return limit_ns < compile_ns ? limit_ns : compile_ns;
}

/* Returns when to look whether |running| compiles, if it was not seen compiling yet. That is early,
 * because the processor time of a compile counts from the look that first sees it. */
static uint64_t early_ns(const struct bhi_core_worker *worker, const struct bhi_submission *running,
                         uint64_t now_ns) {
    const uint64_t compile_ns = worker->stream->compile_deadline_ns, pause_ns = compile_ns / 8;
    const uint64_t due = due_ns(worker, running);
    const uint64_t early =
        compile_ns == BH_FOREVER
            ? BH_FOREVER
            : bhi_after_ns(now_ns, pause_ns > MARKER_LOOK_NS ? pause_ns : MARKER_LOOK_NS);
    return early < due ? early : due;
}

/* Returns when to look again, if something has to be done about |running| at |look|. Submissions
 * that share a queue submission begin without a notice: the time of the next one counts from the
 * look that sees it, so that look must not be late. */
static uint64_t look_ns(const struct bhi_core_worker *worker, const struct bhi_submission *running,
                        uint64_t look, uint64_t now_ns) {
    if ((worker->shortest_ns == BH_FOREVER && !worker->cancels) ||
        worker->inflight.prev == &running->link) {
        return look;
    }
    uint64_t pause = worker->shortest_ns / 8;
    if (worker->cancels || pause < MARKER_LOOK_NS) {
        pause = MARKER_LOOK_NS;
    }
    return now_ns + pause < look ? now_ns + pause : look;
}

static void arm(struct bhi_core_worker *worker, uint64_t now_ns) {
    const struct bhi_submission *head = head_of(worker);
    worker->core->ops->arm(worker->core,
                           look_ns(worker, head, early_ns(worker, head, now_ns), now_ns));
}

enum bhi_apart bhi_core_submission_apart(const struct bhi_submission *submission) {
    enum bhi_apart apart = submission->stream->apart;
    if (submission->apart > apart) {
        apart = submission->apart;
    }
    if (apart == BHI_APART_NOT && submission->stream->core->ops->on_trial(submission)) {
        apart = BHI_APART_CODE;
    }
    return apart;
}

bool bhi_core_worker_suits(const struct bhi_core_worker *worker,
                           const struct bhi_core_stream *stream) {
    if (!worker->past.code) {
        return true;
    }
    if (bhi_list_empty(&stream->queue)) {
        return stream->apart == BHI_APART_NOT;
    }
    const struct bhi_submission *next =
        BHI_CONTAINER(stream->queue.next, struct bhi_submission, link);
    return bhi_past_suits(&worker->past, next, bhi_core_submission_apart(next), true);
}

static int release(struct bhi_core_worker *worker, struct bhi_submission *submission,
                   enum bhi_apart apart) {
    struct bhi_core *core = worker->core;
    /* Stored before the worker can begin: the worker's own times are checked against it. */
    const uint64_t now_ns = core->ops->now_ns(core);
    const int result = core->ops->publish(worker, submission, apart, worker->published + 1);
    if (result != BHI_PUBLISHED) {
        return result;
    }
    bool first = bhi_list_empty(&worker->inflight);
    bool second = !first && worker->inflight.next == worker->inflight.prev;
    bhi_past_add(&worker->past, submission, apart, first);
    bhi_list_remove(&submission->link);
    bhi_list_append(&worker->inflight, &submission->link);
    submission->state = BHI_RELEASED;
    submission->stream->queued--;
    submission->stream->in_flight++;
    submission->worker = worker;
    submission->seq = ++worker->published;
    submission->released_ns = now_ns;
    if (first) {
        worker->running_since_ns = submission->released_ns;
        worker->marker_seen = worker->harvested;
        worker->shortest_ns = BH_FOREVER;
    }
    uint64_t limit_ns = shorter_ns(worker, submission);
    bool shorter = limit_ns < worker->shortest_ns;
    if (shorter) {
        worker->shortest_ns = limit_ns;
    }
    /* While a submission was alone in the lane, there was no next one whose beginning had to be
     * noticed. */
    if (shorter || (second && worker->shortest_ns != BH_FOREVER)) {
        arm(worker, submission->released_ns);
    }
    core->ops->turned(submission->event);
    return BHI_PUBLISHED;
}

/* Ends |submission|, which could not be published: no worker is to blame. */
static void refuse(struct bhi_submission *submission, int error) {
    struct bhi_core *core = submission->stream->core;
    struct bhi_outcome outcome = BHI_OUTCOME_INIT;
    const bool memory = error == ENOMEM, descriptors = error == EMFILE || error == ENFILE;
    char text[128];
    bhi_format(text, sizeof text, "a buffer or kernel cannot be passed to the worker: %s",
               strerror(error));
    outcome.status = memory ? BH_NO_MEMORY : BH_SYSTEM;
    outcome.sys_errno = memory ? 0 : error;
    outcome.executed = BH_EXECUTED_NO;
    outcome.ended_ns = core->ops->now_ns(core);
    outcome.message =
        memory ? bh_status_text(BH_NO_MEMORY)
        : descriptors
            ? "the host has no free file descriptor to pass a buffer or kernel to the worker"
            : text;
    bhi_submission_end(submission, &outcome);
}

/* The next submission needs another worker: this one is replaced once its lane is empty. The
 * replacement is planned, and no failure. */
static void make_way(struct bhi_core_worker *worker) {
    if (!bhi_list_empty(&worker->inflight)) {
        worker->queue_waits = true;
        worker->core->ops->notify(worker);
        return;
    }
    bhi_core_worker_kill(worker, BHI_KILL_RETIRED, 0,
                         "it was replaced: the next submission needs a fresh worker");
}

void bhi_core_worker_fill(struct bhi_core_stream *stream) {
    struct bhi_core_worker *worker = stream->worker;
    const struct bhi_core_ops *ops = stream->core->ops;
    if (stream->state != BHI_STREAM_SERVED || worker->life.kill != BHI_KILL_NONE) {
        return;
    }
    ops->ref_stream(stream);
    worker->queue_waits = false;
    while (!bhi_list_empty(&stream->queue)) {
        struct bhi_submission *next =
            BHI_CONTAINER(stream->queue.next, struct bhi_submission, link);
        if (next->holds) {
            break; /* the submissions behind it wait too: a stream keeps their order */
        }
        struct bhi_outcome refusal;
        if (ops->refuse(next, &refusal)) {
            bhi_submission_end(next, &refusal);
            continue;
        }
        const enum bhi_apart apart = bhi_core_submission_apart(next);
        if (stream->dying && apart != BHI_APART_NOT) {
            break; /* until the death of the worker before is confirmed, which pumps the stream */
        }
        if (!bhi_past_suits(&worker->past, next, apart, bhi_list_empty(&worker->inflight))) {
            make_way(worker);
            break;
        }
        next->end_watched |= stream->apart == BHI_APART_ALL; /* the worker is replaced then */
        const int result = release(worker, next, apart);
        if (result == BHI_LANE_FULL) {
            worker->queue_waits = true;
            ops->notify(worker);
            if (bhi_list_empty(
                    &worker->inflight)) { /* all in the lane are withdrawn: see check_idle */
                ops->arm(worker->core, worker->running_since_ns + SKIP_NS);
            }
            break;
        }
        if (result != BHI_PUBLISHED) {
            refuse(next, -result);
        }
    }
    ops->unref_stream(stream);
}

bool bhi_core_worker_withdraw(struct bhi_core_worker *worker, struct bhi_submission *submission) {
    if (worker->life.state == BHI_BURIED || worker->life.violated ||
        worker->life.kill != BHI_KILL_NONE || submission->skip_requested ||
        !bhi_idset_reserve(&worker->withdrawn, 1)) {
        return false;
    }
    submission->skip_requested = true;
    if (!worker->core->ops->withdraw(worker, submission->seq)) {
        return false;
    }
    bhi_idset_add(&worker->withdrawn, submission->seq);
    /* The next submission's turn comes only now. The time before belongs to the one that has just
     * ended. */
    if (submission == head_of(worker)) {
        worker->running_since_ns = worker->core->ops->now_ns(worker->core);
        worker->core->ops->arm(worker->core, 0); /* the next one's time has just begun */
    }
    return true;
}

/* -- results ---------------------------------------------------------------------------------- */

void bhi_core_worker_hasten(struct bhi_core_worker *worker, struct bhi_submission *submission) {
    if (!submission->cancel_counted) {
        worker->cancels++;
    }
    submission->cancel_counted = true;
    worker->core->ops->arm(worker->core, 0);
}

bool bhi_core_worker_skip(struct bhi_core_worker *worker) {
    if (!bhi_idset_remove(&worker->withdrawn, worker->harvested + 1)) {
        return false;
    }
    worker->harvested++;
    worker->core->ops->withdrawn(worker, worker->harvested);
    worker->running_since_ns = worker->core->ops->now_ns(worker->core);
    return true;
}

/* The worker has stopped |submission| because it was asked to. Writes the reason into |outcome|. */
static void aborted(const struct bhi_core_worker *worker, const struct bhi_submission *submission,
                    struct bhi_outcome *outcome, char message[160]) {
    char limit[BHI_TEXT_TIME];
    *outcome = (struct bhi_outcome){.status = BH_DEADLINE,
                                    .executed = BH_EXECUTED_UNKNOWN,
                                    .exit_code = -1,
                                    .command_index = BH_NO_COMMAND,
                                    .worker_pid = worker->pid,
                                    .device = worker->device,
                                    .started_ns = outcome->started_ns,
                                    .ended_ns = outcome->ended_ns,
                                    .device_ns = outcome->device_ns,
                                    .message = message};
    /* A worker on a busy machine begins its next submission late. That delay was part of the time.
     */
    if (submission->turn_ns < outcome->started_ns) {
        outcome->started_ns = submission->turn_ns;
    }
    if (submission->end_requested == BHI_KILL_CANCEL) {
        outcome->status = BH_CANCELLED;
        bhi_format(message, 160,
                   "cancelled while it ran; the submission was stopped, and worker %d still runs",
                   worker->pid);
    } else {
        outcome->limit = submission->deadline_ns;
        const uint64_t told_ns = bhi_after_ns(submission->turn_ns, submission->deadline_ns);
        if (outcome->ended_ns < told_ns) { /* its own clock */
            outcome->ended_ns = told_ns;
        }
        bhi_format(
            message, 160,
            "the deadline of %s passed; the submission was stopped, and worker %d still runs",
            bhi_text_time(submission->deadline_ns, limit), worker->pid);
    }
}

/* A GPU's driver ends a kernel that has kept another process waiting for about 4 s, and the device
 * is lost. A kernel's own fault looks the same, so it is only suspected (T2). Submissions that the
 * device had together with it are lost with it, so lost_late stays set. Times of a worker are
 * bounded: it cannot have begun before it was given the submission, nor run longer than until now.
 */
static bool lost_late(struct bhi_core_worker *worker, const struct bhi_outcome *outcome) {
    const uint64_t now_ns = worker->core->ops->now_ns(worker->core);
    const uint64_t end_ns = outcome->ended_ns < now_ns ? outcome->ended_ns : now_ns;
    worker->lost_late |= worker->on_gpu && end_ns > outcome->started_ns &&
                         end_ns - outcome->started_ns >= PATIENCE_NS;
    return worker->lost_late;
}

static void judge_loss(struct bhi_core_worker *worker, struct bhi_outcome *outcome,
                       char message[512]) {
    if (outcome->status != BH_DEVICE_LOST || !lost_late(worker, outcome)) {
        return;
    }
    bhi_blame_lower(&outcome->blame);
    bhi_format(
        message, 512,
        "%.330s; a GPU's driver ends a kernel that keeps other processes waiting for about 4 s: "
        "if that was it, set a shorter deadline, or split the work over several launches",
        outcome->message);
    outcome->message = message;
}

bool bhi_core_worker_result(struct bhi_core_worker *worker, struct bhi_outcome *outcome) {
    struct bhi_submission *submission = head_of(worker);
    char message[160], loss[512];
    BHI_CHECK(!bhi_list_empty(&worker->inflight) && submission->seq == worker->harvested + 1);
    if (submission->skip_requested) {
        worker->core->ops->withdrawn(worker, submission->seq);
    }
    if (outcome->status == BH_CANCELLED && !submission->skip_requested) {
        bhi_core_worker_violation(worker, "it skipped a submission that was not cancelled");
        return false;
    }
    if (outcome->status == BH_DEADLINE && !submission->end_requested) {
        bhi_core_worker_violation(worker, "it stopped a submission that nobody had cancelled");
        return false;
    }
    if (outcome->started_ns < submission->released_ns) {
        outcome->started_ns = submission->released_ns;
    }
    if (outcome->ended_ns < outcome->started_ns) {
        outcome->ended_ns = outcome->started_ns;
    }
    const uint64_t most_ns =
        submission->reports_device_time ? outcome->ended_ns - outcome->started_ns : 0;
    if (outcome->device_ns > most_ns) {
        worker->life.kill_reason = BH_REASON_DEVICE_TIME;
        bhi_core_worker_violation(worker, "it claims more time on the device than has passed");
        return false;
    }
    if (outcome->status == BH_DEVICE_LOST && bhi_submission_again(submission, BHI_REPEAT_ALWAYS)) {
        worker->life.loss = BHI_LOSS_FINAL; /* the next worker runs the copy */
        bhi_core_worker_kill(worker, BHI_KILL_LOST, 0, "its device was lost");
        return false;
    }
    worker->harvested++;
    /* Never backwards: a later submission may have been seen to begin. */
    if (worker->running_since_ns < outcome->ended_ns) {
        worker->running_since_ns = outcome->ended_ns;
    }
    if (outcome->status == BH_CANCELLED) {
        bhi_submission_end_unstarted(submission, BH_CANCELLED, BHI_CANCELLED_UNSTARTED, worker);
        return true;
    }
    if (outcome->status == BH_DEADLINE) {
        aborted(worker, submission, outcome, message);
    }
    outcome->blame = bhi_past_blame(&worker->past, submission, outcome->status);
    if (outcome->elsewhere || outcome->status == submission->injected) {
        bhi_blame_lower(&outcome->blame);
    }
    judge_loss(worker, outcome, loss);
    if (worker->stream) {
        worker->stream->restart.productive = true;
    }
    bhi_submission_end(submission, outcome);
    return true;
}

void bhi_core_worker_settle(struct bhi_core_worker *worker) {
    const struct bhi_core_ops *ops = worker->core->ops;
    if (!bhi_list_empty(&worker->inflight)) {
        const struct bhi_submission *head = head_of(worker);
        if (worker->running_since_ns < head->released_ns) {
            worker->running_since_ns = head->released_ns;
        }
        if (head->cancel_requested || worker->cancels || worker->shortest_ns != BH_FOREVER) {
            arm(worker, ops->now_ns(worker->core));
        }
    }
    if (worker->queue_waits && worker->stream) {
        bhi_stream_wants_pump(worker->stream);
    }
    /* The worker is replaced now, not with the next submission: the new one starts earlier, and the
     * old one does not stay idle. */
    if (worker->stream && worker->stream->apart == BHI_APART_ALL && worker->past.used &&
        bhi_list_empty(&worker->inflight) && worker->life.kill == BHI_KILL_NONE) {
        make_way(worker);
    }
}

/* -- deadlines -------------------------------------------------------------------------------- */

/* Everything in the lane has been withdrawn. The worker has to skip it, and no submission's
 * deadline would catch a worker that does not. */
static uint64_t check_idle(struct bhi_core_worker *worker, uint64_t now_ns) {
    if (!worker->withdrawn.map.count || !worker->queue_waits) {
        return BH_FOREVER;
    }
    uint64_t due = worker->running_since_ns + SKIP_NS;
    if (due > now_ns) {
        return due;
    }
    bhi_core_worker_kill(worker, BHI_KILL_DEADLINE, 0,
                         "it did not skip a withdrawn submission in time");
    return BH_FOREVER;
}

/* Returns the submission that the device works on. Several can share one queue submission, and then
 * one completion record; the device's own marker tells them apart. *out_reached: how far the device
 * is. */
static struct bhi_submission *running_of(const struct bhi_core_worker *worker,
                                         const struct bhi_progress_snapshot *snapshot,
                                         uint64_t *out_reached) {
    uint32_t moved = snapshot->marker - (uint32_t)worker->harvested;
    *out_reached = worker->harvested + (moved <= BHI_MERGED_AT_MOST ? moved : 0);
    if (*out_reached > snapshot->started) { /* or each further number would be worth a deadline */
        *out_reached = snapshot->started;
    }
    struct bhi_submission *running = head_of(worker);
    BHI_LIST_FOR(struct bhi_submission, submission, &worker->inflight, link) {
        if (submission != running && submission->seq > snapshot->started) {
            break; /* all that has started is done, but not recorded: the last one counts */
        }
        running = submission;
        if (submission->seq > *out_reached) {
            break;
        }
    }
    return running;
}

/* Returns true while the worker compiles |running|. The time to run begins when this first sees
 * that the compile has ended. What the worker says of an earlier one than it was seen at counts no
 * more: two that took turns would have no end. */
static bool compiling(struct bhi_core_worker *worker, const struct bhi_submission *running,
                      const struct bhi_progress_snapshot *snapshot, uint64_t now_ns) {
    if (snapshot->compiles != running->seq || worker->compiled >= running->seq) {
        return false;
    }
    if (!snapshot->compile_ended) {
        if (worker->compiles < running->seq) {
            worker->compiles = running->seq;
            bhi_compile_begin(&worker->compile, worker->core->ops->cpu_ns(worker));
        }
        return true;
    }
    worker->compiled = running->seq;
    worker->running_since_ns = now_ns;
    return false;
}

/* Returns when |running|, which compiles, must be stopped, or looked at again. */
static uint64_t compile_due_ns(struct bhi_core_worker *worker, const struct bhi_submission *running,
                               uint64_t now_ns) {
    if (running->end_requested || running->cancel_requested) {
        return due_ns(worker, running);
    }
    return bhi_compile_due(&worker->compile, worker->running_since_ns,
                           worker->stream->compile_deadline_ns, worker->core->ops->cpu_ns(worker),
                           now_ns);
}

/* Why the worker of a running submission past its time is killed without an attempt to stop it. */
static const char *why_not_stopped(const struct bhi_core_worker *worker,
                                   const struct bhi_submission *running) {
    return running->trusted      ? "; a trusted kernel cannot be stopped"
           : !running->abortable ? "" /* a copy or a load: they have no time in which to stop */
           : !worker->can_abort  ? "; this worker cannot stop a kernel"
           : !worker->stream->grace_ns ? "; the grace time is 0"
                                       : "";
}

/* Writes why the worker is killed for |running|, which has come to |phase|. */
static void say_kill(const struct bhi_core_worker *worker, const struct bhi_submission *running,
                     enum bhi_kill reason, enum bhi_phase phase,
                     char out[sizeof((struct bhi_core_worker *)NULL)->life.kill_text]) {
    static const char *const cancelled[] = {
        [BHI_PHASE_UNBEGUN] = "cancelled before it began",
        [BHI_PHASE_COMPILES] = "cancelled while it was compiled",
        [BHI_PHASE_RUNS] = "cancelled while it ran",
        [BHI_PHASE_BEGINS] = "cancelled as it began",
    };
    static const char *const late[] = {
        [BHI_PHASE_UNBEGUN] = "; the submission had not begun",
        [BHI_PHASE_COMPILES] = "",
        [BHI_PHASE_RUNS] = "",
        [BHI_PHASE_BEGINS] = "; the submission began as its worker was killed",
    };
    const size_t size = sizeof worker->life.kill_text;
    const uint64_t limit_ns =
        reason == BHI_KILL_COMPILE ? worker->stream->compile_deadline_ns : running->deadline_ns;
    char limit[BHI_TEXT_TIME], grace[BHI_TEXT_TIME], stop[BHI_COMPILE_TEXT] = "";
    if (reason == BHI_KILL_COMPILE) {
        (void)bhi_compile_say(&worker->compile, limit_ns, stop);
    } else if (running->end_requested) {
        bhi_format(stop, sizeof stop, "; it did not stop within the grace time of %s",
                   bhi_text_time(worker->stream->grace_ns, grace));
    } else if (phase == BHI_PHASE_RUNS) {
        bhi_format(stop, sizeof stop, "%s", why_not_stopped(worker, running));
    }
    const char *stopped =
        worker->life.kill_stopped ? "; somebody had stopped the worker (SIGSTOP)" : "";
    if (reason == BHI_KILL_CANCEL) {
        bhi_format(out, size, "%s%s%s", cancelled[phase], stop, stopped);
    } else {
        bhi_format(out, size, "the %s of %s passed%s%s%s",
                   reason == BHI_KILL_COMPILE ? "compile deadline" : "deadline",
                   bhi_text_time(limit_ns, limit), late[phase], stop, stopped);
    }
}

static void kill_for(struct bhi_core_worker *worker, const struct bhi_submission *running,
                     bool compiles, uint64_t started) {
    enum bhi_kill reason = running->end_requested      ? running->end_requested
                           : running->cancel_requested ? BHI_KILL_CANCEL
                           : compiles                  ? BHI_KILL_COMPILE
                                                       : BHI_KILL_DEADLINE;
    const bool unbegun = !running->end_requested && running->seq > started;
    char text[sizeof worker->life.kill_text];
    worker->life.kill_stopped = worker->core->ops->stopped(worker);
    worker->life.kill_phase = unbegun    ? BHI_PHASE_UNBEGUN
                              : compiles ? BHI_PHASE_COMPILES
                                         : BHI_PHASE_RUNS;
    say_kill(worker, running, reason, worker->life.kill_phase, text);
    bhi_core_worker_kill(worker, reason, running->event->id, "%s", text);
}

void bhi_core_worker_mend_text(struct bhi_core_worker *worker,
                               const struct bhi_progress_snapshot *last) {
    BHI_LIST_FOR(const struct bhi_submission, s, &worker->inflight, link) {
        if (s->event->id != worker->life.kill_event || worker->life.violated || s->end_requested) {
            continue;
        }
        const bool compiles = last->compiles == s->seq && !last->compile_ended;
        if ((worker->life.kill_phase == BHI_PHASE_UNBEGUN && s->seq <= last->started) ||
            (worker->life.kill_phase == BHI_PHASE_COMPILES && !compiles)) {
            say_kill(worker, s, worker->life.kill, BHI_PHASE_BEGINS, worker->life.kill_text);
        }
    }
}

uint64_t bhi_core_worker_deadline(struct bhi_core_worker *worker, uint64_t now_ns,
                                  const struct bhi_progress_snapshot *snapshot) {
    if (worker->life.kill != BHI_KILL_NONE) {
        return BH_FOREVER;
    }
    if (bhi_list_empty(&worker->inflight)) {
        return check_idle(worker, now_ns);
    }
    uint64_t reached;
    struct bhi_submission *running = running_of(worker, snapshot, &reached);
    if (reached > worker->harvested && reached > worker->marker_seen) {
        /* Its time counts from now, when it is first seen to run. If nothing is merged, the marker
         * is an old one, and the time counts from the last result. */
        worker->marker_seen = reached;
        worker->running_since_ns = now_ns;
    }
    bool compiles = compiling(worker, running, snapshot, now_ns);
    uint64_t grace_ns = worker->stream->grace_ns;
    uint64_t due = compiles ? compile_due_ns(worker, running, now_ns) : due_ns(worker, running);
    if (due > now_ns) {
        /* A submission that was neither seen to compile nor to have compiled may begin to compile
         * after this look. */
        const bool open = !compiles && worker->compiled < running->seq;
        return look_ns(worker, running, open ? early_ns(worker, running, now_ns) : due, now_ns);
    }
    if (!running->end_requested) {
        running->turn_ns = worker->running_since_ns;
    }
    if (running->end_requested || compiles || !running->abortable || !worker->can_abort ||
        !grace_ns || running->seq > snapshot->started) {
        kill_for(worker, running, compiles, snapshot->started);
        return BH_FOREVER;
    }
    running->end_requested = running->cancel_requested ? BHI_KILL_CANCEL : BHI_KILL_DEADLINE;
    worker->asked_ns = now_ns;
    worker->core->ops->abort(worker, running->seq);
    return look_ns(worker, running, bhi_after_ns(now_ns, grace_ns), now_ns);
}
