/* What a worker's death means for each submission that it had. */
#include "base/check.h"
#include "base/format.h"
#include "core/worker.h"

#include <signal.h>
#include <stdio.h>

static struct bhi_submission *oldest(const struct bhi_core_worker *worker) {
    return BHI_CONTAINER(worker->inflight.next, struct bhi_submission, link);
}

static const struct bhi_submission *submission_of(const struct bhi_core_worker *worker,
                                                  uint64_t seq) {
    BHI_LIST_FOR(const struct bhi_submission, s, &worker->inflight, link) {
        if (s->seq == seq) {
            return s;
        }
    }
    return NULL;
}

/* Returns |started|, or more: a submission that the worker was asked to stop had begun, whatever
 * the worker claims now. */
static uint64_t begun(const struct bhi_core_worker *worker, uint64_t started) {
    BHI_LIST_FOR(const struct bhi_submission, s, &worker->inflight, link) {
        if (s->end_requested && s->seq > started) {
            started = s->seq;
        }
    }
    return started;
}

/* When the turn of |submission|, which the worker had begun, came. */
static uint64_t turn_of(const struct bhi_core_worker *worker,
                        const struct bhi_submission *submission) {
    /* turn_ns is kept from the look that found the submission too late. What the worker skipped or
     * reported until its death may have moved running_since_ns. */
    const uint64_t turn_ns = submission->turn_ns ? submission->turn_ns : worker->running_since_ns;
    return turn_ns < submission->released_ns ? submission->released_ns : turn_ns;
}

/* Compiling runs no part of the kernel. */
static bool compiled(const struct bhi_core_worker *worker, const struct bhi_death *death,
                     uint64_t seq) {
    return !worker->life.violated && death->snapshot.compiles == seq &&
           !death->snapshot.compile_ended;
}

/* Has it begun to run? If not, its worker was killed because of its time, or of a cancel. */
static bool has_begun(const struct bhi_core_worker *worker, const struct bhi_death *death,
                      const struct bhi_submission *submission) {
    return submission->runs_kernel && !compiled(worker, death, submission->seq) &&
           (worker->life.violated || submission->end_requested ||
            submission->seq <= death->snapshot.started);
}

/* Did its deadline pass because somebody had stopped the process? */
static bool was_stopped(const struct bhi_core_worker *worker, bh_status status) {
    return worker->life.kill_stopped && (status == BH_DEADLINE || status == BH_COMPILE_FAILED);
}

/* Somebody else ended the worker, or its zygote: nobody here is to blame. One that was given up may
 * still write. */
static bool ended_by_others(const struct bhi_core_worker *worker, const struct bhi_death *death) {
    const bh_status status = death->outcome.status;
    return !worker->life.given_up &&
           (status == BH_ZYGOTE_LOST || death->cause == BHI_CAUSE_OUTSIDE ||
            was_stopped(worker, status));
}

/* Returns which submissions run again after such a death, if |submission| is one: what has not begun
 * has written nothing. */
static enum bhi_repeat least_repeat(const struct bhi_core_worker *worker,
                                    const struct bhi_death *death,
                                    const struct bhi_submission *submission) {
    if (!ended_by_others(worker, death)) {
        return BHI_REPEAT_ALWAYS;
    }
    return has_begun(worker, death, submission) ? BHI_REPEAT_VICTIM : BHI_REPEAT_NEVER;
}

/* Returns true if |submission|, which the worker had taken, is put back. */
static bool runs_again(const struct bhi_core_worker *worker, const struct bhi_death *death,
                       const struct bhi_submission *submission) {
    return bhi_submission_again(submission, least_repeat(worker, death, submission));
}

/* Puts submissions that were never started (E13), and those that run again, back to the head of the
 * queue, in order. */
static void put_back(struct bhi_core_worker *worker, const struct bhi_death *death,
                     uint64_t started) {
    struct bhi_core_stream *stream = worker->stream;
    for (struct bhi_list *node = worker->inflight.prev, *before = node->prev;
         node != &worker->inflight; node = before, before = node->prev) {
        struct bhi_submission *last = BHI_CONTAINER(node, struct bhi_submission, link);
        if (last->seq <= started && !runs_again(worker, death, last)) {
            continue;
        }
        /* A submission that was cancelled, let go or doomed while it was in the lane does not run
         * again. */
        if (last->cancel_requested || last->skip_requested || last->doomed) {
            bhi_submission_end_unstarted(last, BH_CANCELLED, BHI_CANCELLED_UNSTARTED, NULL);
            continue;
        }
        bhi_list_remove(&last->link);
        last->state = BHI_QUEUED;
        stream->queued++;
        stream->in_flight--;
        last->end_requested = BHI_KILL_NONE;
        last->turn_ns = 0;
        last->worker = NULL;
        bhi_list_insert_before(stream->queue.next, &last->link);
        stream->core->ops->turned(last->event);
    }
}

/* Returns the number of the submission that was running: the first that the device had not
 * finished. 0: none is to blame, because the one for which the worker was killed ended before the
 * signal came. */
static uint64_t culprit_of(const struct bhi_core_worker *worker, uint64_t started,
                           uint32_t marker) {
    uint64_t first = oldest(worker)->seq;
    if (worker->life.kill_event) {
        const struct bhi_submission *target = NULL;
        BHI_LIST_FOR(const struct bhi_submission, s, &worker->inflight, link) {
            if (s->event->id == worker->life.kill_event) {
                target = s;
            }
        }
        return target ? target->seq : 0;
    }
    if (worker->life.violated || worker->life.loss == BHI_LOSS_FINAL) {
        return first;
    }
    uint32_t moved = marker - (uint32_t)worker->harvested;
    uint64_t running = worker->harvested + moved + 1;
    BHI_LIST_EACH(node, &worker->inflight) {
        uint64_t seq = BHI_CONTAINER(node, struct bhi_submission, link)->seq;
        if (seq >= running && seq <= started) {
            return seq;
        }
    }
    return first;
}

bool bhi_outcome_is_crash(const struct bhi_outcome *outcome) {
    switch (outcome->status) {
    case BH_WORKER_EXIT:
    case BH_OUT_OF_HOST_MEMORY:
        return true;
    case BH_WORKER_SIGNAL:
        return outcome->signal == SIGSEGV || outcome->signal == SIGBUS ||
               outcome->signal == SIGABRT || outcome->signal == SIGILL ||
               outcome->signal == SIGFPE || outcome->signal == SIGTRAP;
    default:
        return false;
    }
}

#define DEADLINE_COSTS 4u /* deaths: it takes long */

/* Counts the death, whoever's doing it was, against the submission that was running, if it may run
 * again: nothing else would end one that no worker survives (E9). Returns false if it may not. */
static bool count_death(const struct bhi_core_worker *worker, const struct bhi_death *death,
                        uint64_t culprit, uint64_t started) {
    const bool timed =
        worker->life.kill == BHI_KILL_DEADLINE || worker->life.kill == BHI_KILL_COMPILE;
    BHI_LIST_FOR(struct bhi_submission, s, &worker->inflight, link) {
        if (s->seq == culprit && culprit <= started &&
            s->repeat >= least_repeat(worker, death, s)) {
            s->deaths += timed ? DEADLINE_COSTS : 1;
            return true;
        }
    }
    return false;
}

/* Says why a result was lost that belongs to no culprit. |event|: the culprit; 0: one of the library's
 * own, or what was compiled when somebody else ended the worker. */
static void tell_loss(char message[512], uint64_t event, bool own, const char *how) {
    char whose[64] = "it compiled something else";
    if (own) {
        snprintf(whose, sizeof whose, "it worked for the library");
    }
    if (event) {
        snprintf(whose, sizeof whose, "running event %llu", (unsigned long long)event);
    }
    bhi_format(message, 512, "its worker died while %s; this result was lost: %.299s", whose, how);
}

static bh_blame blame_of(const struct bhi_core_worker *worker, const struct bhi_death *death,
                         const struct bhi_submission *submission, bh_status status) {
    if (death->cause == BHI_CAUSE_OUTSIDE || was_stopped(worker, status)) {
        return BH_BLAME_NONE;
    }
    bh_blame blame = bhi_past_blame(&worker->past, submission, status);
    /* A worker killed before the submission began imported buffers or stood still. */
    const bool unbegun =
        worker->life.kill == BHI_KILL_DEADLINE && worker->life.kill_phase == BHI_PHASE_UNBEGUN;
    /* A compile past its deadline: the machine may have been busy, or the driver at fault. */
    const bool late = death->outcome.status == BH_COMPILE_FAILED;
    if ((status == BH_DEADLINE && unbegun) || late || status == submission->injected ||
        death->cause == BHI_CAUSE_DOUBTFUL) {
        bhi_blame_lower(&blame);
    }
    return blame;
}

/* A submission whose result was not recorded may have written anything (E11). */
static void judge(struct bhi_core_worker *worker, struct bhi_submission *submission,
                  const struct bhi_death *death, uint64_t culprit, uint64_t origin, uint64_t tick) {
    struct bhi_outcome outcome = death->outcome;
    char message[512];
    const bool compiling = compiled(worker, death, submission->seq);
    outcome.executed = has_begun(worker, death, submission) ? BH_EXECUTED_UNKNOWN : BH_EXECUTED_NO;
    if (submission->seq == culprit) {
        outcome.tick = tick;
        if (outcome.status == BH_DEADLINE) {
            outcome.limit = submission->deadline_ns;
        }
        if (outcome.status == BH_COMPILE_FAILED) {
            outcome.limit = worker->stream->compile_deadline_ns;
        }
        if (compiling && bhi_outcome_is_crash(&outcome)) {
            bhi_format(message, sizeof message, "its worker died while compiling: %.400s",
                       outcome.message);
            outcome.status = BH_COMPILE_FAILED;
            outcome.message = message;
        }
    } else if (outcome.status == BH_CANCELLED && submission->cancel_requested) {
        /* It was cancelled itself, so it is no victim. */
    } else if (outcome.status != BH_CONTEXT_CLOSED && outcome.status != BH_ZYGOTE_LOST) {
        tell_loss(message,
                  origin    ? origin
                  : culprit ? 0
                            : worker->life.kill_event,
                  culprit, outcome.message);
        outcome.status = BH_WORKER_LOST;
        outcome.reason = BH_REASON_NONE; /* that was the worker's */
        outcome.origin = origin;
        outcome.tick = origin ? tick : 0; /* without a culprit each one is its own origin */
        outcome.message = message;
    }
    outcome.blame = submission->seq == culprit ? blame_of(worker, death, submission, outcome.status)
                                               : BH_BLAME_NONE;
    outcome.started_ns = turn_of(worker, submission);
    outcome.ended_ns = worker->core->ops->now_ns(worker->core);
    bhi_submission_end(submission, &outcome);
}

/* The culprit ends first. It may depend on a submission that is lost with it, and its own failure
 * must not come back to it along that path. */
static void judge_started(struct bhi_core_worker *worker, const struct bhi_death *death,
                          uint64_t culprit, uint64_t started) {
    uint64_t origin = 0, tick = ++worker->core->ticks;
    BHI_LIST_FOR(struct bhi_submission, submission, &worker->inflight, link) {
        if (submission->seq == culprit && culprit <= started) {
            origin = submission->event->library ? 0 : submission->event->id;
            judge(worker, submission, death, culprit, origin, tick);
            break;
        }
    }
    while (!bhi_list_empty(&worker->inflight)) {
        struct bhi_submission *next = oldest(worker);
        if (next->seq > started) {
            break;
        }
        judge(worker, next, death, culprit, origin, tick);
    }
}

/* The context closes: submissions that were never started cannot run elsewhere. */
static void end_rest(struct bhi_core_worker *worker) {
    while (!bhi_list_empty(&worker->inflight)) {
        bhi_submission_end_unstarted(oldest(worker), BH_CONTEXT_CLOSED,
                                     "the context was destroyed before it started", worker);
    }
}

bool bhi_core_worker_may_leave(const struct bhi_core_worker *worker) {
    const struct bhi_core_stream *stream = worker->stream;
    return stream && stream->state == BHI_STREAM_SERVED && stream->apart == BHI_APART_NOT &&
           !stream->dying && stream->restart.productive && worker->life.kill == BHI_KILL_NONE &&
           !worker->life.violated && bhi_list_empty(&worker->inflight) &&
           worker->harvested == worker->published;
}

void bhi_core_worker_leave(struct bhi_core_worker *worker, const bh_detail *why) {
    struct bhi_core_stream *stream = worker->stream;
    BHI_CHECK(bhi_core_worker_may_leave(worker));
    bhi_core_worker_kill(worker, BHI_KILL_LEFT, 0, "%s", "");
    worker->stream = NULL;
    worker->left_by = stream;
    stream->dying = worker;
    bhi_stream_bereaved(stream);
    bhi_stream_lost_worker(stream, false, why);
}

/* What has begun may be written until the device is released, also by what runs again. */
static void tell_writes(struct bhi_core_worker *worker, uint64_t started) {
    BHI_LIST_FOR(const struct bhi_submission, s, &worker->inflight, link) {
        for (uint32_t i = 0; s->seq <= started && i < s->use_count; i++) {
            if (s->uses[i].writes) {
                worker->core->ops->writes_on(worker, s->uses[i].content);
            }
        }
    }
}

/* Ends or puts back what the worker had. Returns true if one of its submissions was to blame. */
static bool lose_inflight(struct bhi_core_worker *worker, const struct bhi_death *death,
                          bool departs) {
    if (bhi_list_empty(&worker->inflight)) {
        return false;
    }
    /* After a protocol violation the worker may have run anything in its lane: it counts as begun. */
    uint64_t started =
        worker->life.violated ? worker->published : begun(worker, death->snapshot.started);
    uint64_t culprit = culprit_of(worker, started, death->snapshot.marker);
    if (departs) {
        tell_writes(worker, started);
    }
    if (worker->life.kill == BHI_KILL_DEADLINE || worker->life.kill == BHI_KILL_CANCEL ||
        worker->life.kill == BHI_KILL_COMPILE || worker->life.kill == BHI_KILL_PROTOCOL ||
        worker->life.loss == BHI_LOSS_FINAL) {
        started = started < culprit ? culprit : started;
    }
    const struct bhi_submission *running = submission_of(worker, culprit);
    const bool callers = running && running->repeat == BHI_REPEAT_NEVER;
    const bool counted = count_death(worker, death, culprit, started);
    if (!death->closing) {
        put_back(worker, death, started);
    }
    if (callers && !submission_of(worker, culprit)) {
        culprit = 0; /* it had not begun, and the next worker runs it */
    }
    const bool blame =
        counted || (!bhi_list_empty(&worker->inflight) && oldest(worker)->seq <= started);
    judge_started(worker, death, culprit, started);
    end_rest(worker);
    return blame;
}

/* Its stream wants another worker. |blame|: one of its submissions was to blame. */
static void leave_stream(struct bhi_core_worker *worker, const struct bhi_death *death,
                         bool blame) {
    struct bhi_core_stream *stream = worker->stream;
    worker->stream = NULL;
    if (worker->life.kill != BHI_KILL_RETIRED) {
        bhi_stream_bereaved(stream);
    }
    const bool is_free = blame || death->excused || worker->life.kill == BHI_KILL_RETIRED;
    if (!is_free && ended_by_others(worker, death)) {
        bhi_stream_taken_worker(stream, &death->why);
    } else {
        bhi_stream_lost_worker(stream, is_free, &death->why);
    }
}

bool bhi_core_worker_may_depart(const struct bhi_core_worker *worker) {
    return worker->confined && worker->stream && worker->stream->state == BHI_STREAM_SERVED &&
           !worker->stream->dying && !worker->life.violated &&
           bhi_life_is_held(&worker->life, worker->core->ops->now_ns(worker->core));
}

bool bhi_core_worker_depart(struct bhi_core_worker *worker, const struct bhi_death *death) {
    struct bhi_core_stream *stream = worker->stream;
    const struct bhi_core_ops *ops = worker->core->ops;
    BHI_CHECK(bhi_core_worker_may_depart(worker));
    ops->ref_stream(stream);
    const bool blame = lose_inflight(worker, death, true);
    worker->departed = true;
    worker->left_by = stream;
    stream->dying = worker;
    leave_stream(worker, death, blame);
    ops->unref_stream(stream);
    return blame;
}

bool bhi_core_worker_died(struct bhi_core_worker *worker, const struct bhi_death *death) {
    struct bhi_core_stream *stream = worker->stream;
    (void)bhi_life_step(&worker->life, BHI_LIFE_BURY, worker->core->ops->now_ns(worker->core));
    if (worker->left_by) {
        worker->left_by->dying = NULL;
        bhi_stream_wants_pump(worker->left_by);
        worker->left_by = NULL;
    }
    if (!stream) {
        BHI_CHECK(bhi_list_empty(&worker->inflight));
        return false;
    }
    const struct bhi_core_ops *ops = worker->core->ops;
    ops->ref_stream(stream);
    const bool blame = lose_inflight(worker, death, false);
    leave_stream(worker, death, blame);
    if (death->others_would_fail && stream->state == BHI_STREAM_WANTING) {
        bhi_stream_unavailable(stream, &death->why, false);
    }
    ops->unref_stream(stream);
    return blame;
}
