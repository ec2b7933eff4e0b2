#include "core/submission.h"
#include "base/array.h"
#include "base/check.h"
#include "base/format.h"
#include "base/idset.h"
#include "base/step_point.h"
#include "core/stream.h"
#include "core/worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- building --------------------------------------------------------------------------------- */

void bhi_submission_init(struct bhi_submission *submission, struct bhi_core_stream *stream,
                         struct bh_event *event) {
    *submission = (struct bhi_submission){.stream = stream, .event = event, .runs_kernel = true};
    bhi_list_init(&submission->link);
    bhi_list_init(&submission->ripple);
    event->submission = submission;
}

bool bhi_submission_use(struct bhi_submission *submission, struct bhi_content *content, bool reads,
                        bool writes, bool whole, bool *out_first) {
    struct bhi_use *found = NULL;
    uint64_t mark = submission->event->id;
    *out_first = content->visit != mark;
    if (!*out_first) {
        found = &submission->uses[content->visit_index];
    }
    if (!found) {
        if (!BHI_ARRAY_RESERVE(submission->uses, submission->use_capacity,
                               submission->use_count + 1)) {
            return false;
        }
        content->visit = mark;
        content->visit_index = submission->use_count;
        found = &submission->uses[submission->use_count++];
        *found = (struct bhi_use){.content = content};
    }
    /* A submission that reads what its earlier command has overwritten does not depend on others
     * for it. */
    if (reads && !found->overwrites) {
        found->reads = true;
    }
    if (writes) {
        found->writes = true;
        if (whole && !reads && !found->reads) {
            found->overwrites = true;
        }
    }
    return true;
}

/* The edges are linked into lists, so each edge is taken out of its list and the copy is put in its
 * place. */
static bool grow_edges(struct bhi_submission *consumer) {
    uint32_t capacity = consumer->edge_capacity ? 2 * consumer->edge_capacity : 4;
    struct bhi_edge *edges = malloc(capacity * sizeof *edges);
    if (!edges) {
        return false;
    }
    for (uint32_t i = 0; i < consumer->edge_count; i++) {
        edges[i] = consumer->edges[i];
        bool linked = !bhi_list_empty(&consumer->edges[i].link);
        bhi_list_init(&edges[i].link);
        if (linked) {
            bhi_list_insert_before(&consumer->edges[i].link, &edges[i].link);
            bhi_list_remove(&consumer->edges[i].link);
        }
    }
    free(consumer->edges);
    consumer->edges = edges;
    consumer->edge_capacity = capacity;
    return true;
}

/* Adds the edge "|consumer| needs |producer|". Does nothing if the producer has ended well. */
static bool need(struct bhi_submission *consumer, struct bh_event *producer, bool data) {
    bh_event_state state = bhi_event_state(producer);
    if (state == BH_EVENT_READY || (state == BH_EVENT_POISONED && !data)) {
        return true;
    }
    bool same = producer->submission && producer->submission->stream == consumer->stream;
    if (same && !data) {
        return true; /* the lane keeps the order */
    }
    if (producer->visit == consumer->event->id) {
        consumer->edges[producer->visit_index].data |= data;
        return true;
    }
    if (consumer->edge_count == consumer->edge_capacity && !grow_edges(consumer)) {
        return false;
    }
    producer->visit = consumer->event->id;
    producer->visit_index = consumer->edge_count;
    struct bhi_edge *edge = &consumer->edges[consumer->edge_count++];
    *edge = (struct bhi_edge){.producer = producer, .consumer = consumer, .data = data};
    bhi_event_ref(producer);
    bhi_list_init(&edge->link);
    if (state == BH_EVENT_PENDING) {
        bhi_list_append(&producer->dependents, &edge->link);
        edge->holds_consumer = !same;
        if (edge->holds_consumer) {
            consumer->holds++;
            bhi_submission_notify(producer->submission);
        }
    }
    return true;
}

/* |reads|: the submission reads the content, so it needs those writers that decide the content. */
static bool need_users(struct bhi_submission *submission, const struct bhi_content_users *users,
                       bool reads) {
    for (uint32_t g = 0; g < users->count; g++) {
        const struct bhi_content_group *group = &users->groups[g];
        bool same = group->stream == submission->stream;
        if (same && !reads) {
            continue; /* the lane keeps the order */
        }
        for (uint32_t i = same ? group->counting : group->first; i < group->end; i++) {
            if (!need(submission, group->users[i], reads && i >= group->counting)) {
                return false;
            }
        }
    }
    return true;
}

bool bhi_submission_depend(struct bhi_submission *submission, bh_event *const *waits,
                           uint32_t wait_count) {
    for (uint32_t i = 0; i < wait_count; i++) {
        if (!need(submission, waits[i], true)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const struct bhi_use *use = &submission->uses[i];
        if (!bhi_content_reserve(use->content, submission->stream) ||
            !need_users(submission, &use->content->writers, use->reads) ||
            (use->writes && !need_users(submission, &use->content->readers, false))) {
            return false;
        }
    }
    return true;
}

/* -- ending ----------------------------------------------------------------------------------- */

/* Drops everything that the submission held for its run (B2: exactly once, at its own end). */
static void drop(struct bhi_submission *submission) {
    const struct bhi_core_ops *ops = submission->stream->core->ops;
    for (uint32_t i = 0; i < submission->edge_count; i++) {
        struct bhi_edge *edge = &submission->edges[i];
        bhi_list_remove(&edge->link);
        bhi_event_unref(edge->producer);
    }
    for (uint32_t i = 0; i < submission->use_count; i++) {
        ops->unref_buffer(submission->uses[i].content);
    }
    free(submission->edges);
    free(submission->uses);
    submission->edges = NULL;
    submission->uses = NULL;
    submission->edge_count = submission->use_count = 0;
}

void bhi_submission_abandon(struct bhi_submission *submission) {
    struct bh_event *event = submission->event;
    drop(submission);
    event->submission = NULL;
    submission->event = NULL;
    submission->stream->core->ops->free_submission(submission);
    bhi_event_unref(event);
}

/* For each result, so not by snprintf. */
static void copy_text(char *out, size_t capacity, const char *text) {
    const size_t length = strnlen(text, capacity - 1);
    memcpy(out, text, length);
    out[length] = '\0';
}

/* The verdict of a submission that ended by itself, well or badly. */
static void judge(struct bhi_submission *submission, const struct bhi_outcome *outcome) {
    struct bhi_core *core = submission->stream->core;
    struct bh_event *event = submission->event;
    struct bh_verdict *verdict = &event->verdict;
    verdict->status = outcome->status;
    verdict->reason = outcome->reason;
    verdict->subject = outcome->subject;
    verdict->value = outcome->value;
    verdict->executed = outcome->executed;
    verdict->blame = submission->repeat == BHI_REPEAT_ALWAYS ? BH_BLAME_NONE : outcome->blame;
    verdict->signal = outcome->signal;
    verdict->exit_code = outcome->exit_code;
    verdict->vk_result = outcome->vk_result;
    verdict->sys_errno = outcome->sys_errno;
    verdict->event = event->id;
    verdict->origin = outcome->origin     ? outcome->origin
                      : event->content_of ? event->content_of
                                          : event->id;
    verdict->hops = event->library && verdict->origin != event->id;
    verdict->other_causes = 0;
    verdict->command_index = outcome->command_index;
    verdict->worker_pid = outcome->worker_pid;
    verdict->limit = outcome->limit;
    verdict->started_ns = outcome->started_ns;
    verdict->ended_ns = outcome->ended_ns;
    verdict->device_ns = outcome->device_ns;
    copy_text(verdict->device, sizeof verdict->device, outcome->device ? outcome->device : "");
    memset(verdict->kernel_hash, 0, sizeof verdict->kernel_hash);
    memcpy(verdict->stream_name, submission->stream->name, sizeof verdict->stream_name);
    if (outcome->status != BH_OK) {
        event->copy_failed = event->library && submission->repeat == BHI_REPEAT_ALWAYS;
        event->words = 0;
        copy_text(verdict->subject_name, sizeof verdict->subject_name,
                  outcome->subject_name ? outcome->subject_name : "");
        event->origin_tick = outcome->tick ? outcome->tick : ++core->ticks;
        bhi_format(verdict->message, sizeof verdict->message, "%s",
                   outcome->message && outcome->message[0] ? outcome->message
                                                           : bh_status_text(outcome->status));
    }
    core->ops->name_kernel(submission, outcome->command_index, verdict);
}

/* Returns the origin of |event| if |cause| dooms it. A failure of the library's own, which no
 * caller can look up, begins with the first caller's event that it reaches. */
static uint64_t origin_for(const struct bh_event *event, const struct bh_event *cause) {
    return cause->library && cause->verdict.origin == cause->id ? event->id : cause->verdict.origin;
}

/* Writes how |event| was reached (may be empty), and the words of its origin, which |cause| has.
 * What |cause| says of its own way is left out. */
static void tell(struct bh_event *event, const struct bh_event *cause, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void tell(struct bh_event *event, const struct bh_event *cause, const char *format, ...) {
    const char *copied =
        cause->copy_failed && !cause->inherited ? "a copy of the content failed: " : "";
    char *message = event->verdict.message;
    const size_t size = sizeof event->verdict.message;
    va_list arguments;
    va_start(arguments, format);
    event->words = (uint16_t)vsnprintf(message, size, format, arguments);
    va_end(arguments);
    bhi_format(message + event->words, size - event->words, "%s%.400s", copied,
               cause->verdict.message + cause->words);
}

/* Writes the verdict of a submission that |cause| dooms. A submission that still runs gets its
 * times and |executed| when it ends. */
static void inherit(struct bhi_submission *submission, const struct bh_event *cause) {
    struct bh_event *event = submission->event;
    uint64_t submitted_ns = event->verdict.submitted_ns;
    event->verdict = cause->verdict;
    event->origin_tick = cause->origin_tick;
    event->inherited = true;
    event->verdict.event = event->id;
    event->verdict.origin = origin_for(event, cause);
    event->verdict.hops = cause->verdict.hops + !cause->library;
    event->verdict.other_causes = 0;
    event->verdict.executed = BH_EXECUTED_NO;
    event->verdict.submitted_ns = submitted_ns;
    event->verdict.started_ns = 0;
    event->verdict.device_ns = 0;
    memcpy(event->verdict.stream_name, submission->stream->name, sizeof event->verdict.stream_name);
    /* A copy is none of its doing. That the device is full is, and names the sizes (D6). */
    event->copy_failed = event->library && cause->copy_failed;
    if (!event->verdict.hops && cause->copy_failed && !event->library &&
        event->verdict.status != BH_OUT_OF_DEVICE_MEMORY &&
        bh_status_classify(event->verdict.status) == BH_STATUS_CLASS_GUILTY) {
        event->verdict.status = BH_WORKER_LOST;
        event->verdict.reason = BH_REASON_NONE;
        event->verdict.subject = BH_SUBJECT_NONE;
        event->verdict.subject_name[0] = '\0';
    }
    const uint32_t hops = event->verdict.hops;
    if (hops) {
        tell(event, cause,
             "depends on event %llu (%u %s away): ", (unsigned long long)event->verdict.origin,
             hops, hops == 1 ? "hop" : "hops");
    } else {
        tell(event, cause, "%s", "");
    }
}

static void ripple(struct bhi_submission *submission) {
    if (bhi_list_empty(&submission->ripple)) {
        bhi_list_append(&submission->stream->core->ripples, &submission->ripple);
    }
}

static void doom(struct bhi_submission *submission, const struct bh_event *cause) {
    BHI_CHECK(!submission->doomed);
    inherit(submission, cause);
    submission->doomed = true;
    ripple(submission);
}

/* A doomed submission has another cause than the one that its verdict reports. |news| is the edge
 * along which the cause came; NULL: it failed itself, or its worker died. */
static void count_cause(struct bhi_submission *submission, uint64_t origin,
                        const struct bhi_edge *news) {
    bool known = origin == submission->event->verdict.origin;
    for (uint32_t i = 0; i < submission->edge_count && !known; i++) {
        const struct bhi_edge *edge = &submission->edges[i];
        known = edge != news && edge->doom_reported &&
                origin_for(submission->event, edge->producer) == origin;
    }
    submission->event->verdict.other_causes += !known;
}

/* The state becomes final. */
static void publish(struct bhi_submission *submission) {
    struct bhi_core_stream *stream = submission->stream;
    struct bh_event *event = submission->event;
    BHI_CHECK(bhi_event_state(event) == BH_EVENT_PENDING);
    if (submission->cancel_counted) {
        submission->worker->cancels--;
    }
    bhi_list_remove(&submission->link);
    (*(submission->state == BHI_QUEUED ? &stream->queued : &stream->in_flight))--;
    submission->state = BHI_ENDED;
    if (!event->library) {
        bhi_stats_ended(&stream->stats, &event->verdict);
    }
    event->submission = NULL;
    BHI_STEP_POINT("event_due", event);
    atomic_store_explicit(&event->word,
                          event->verdict.status == BH_OK ? BH_EVENT_READY : BH_EVENT_POISONED,
                          memory_order_release);
    stream->core->ops->ended(event);
}

/* A doomed submission that has not started need not run: it ends now. */
static void end_early(struct bhi_submission *submission) {
    struct bhi_core *core = submission->stream->core;
    if (submission->state == BHI_RELEASED &&
        !bhi_core_worker_withdraw(submission->worker, submission)) {
        return;
    }
    submission->event->verdict.ended_ns = core->ops->now_ns(core);
    publish(submission);
}

static void tell_dependents(struct bhi_submission *submission) {
    struct bh_event *event = submission->event;
    bool ended = submission->state == BHI_ENDED;
    bool poisoned = submission->doomed || event->verdict.status != BH_OK;
    BHI_LIST_FOR_SAFE(struct bhi_edge, edge, &event->dependents, link) {
        struct bhi_submission *consumer = edge->consumer;
        if (ended) {
            bhi_list_remove(&edge->link);
            if (edge->holds_consumer) {
                BHI_CHECK(consumer->holds > 0);
                consumer->holds--;
            }
        }
        if (poisoned && edge->data && !edge->doom_reported) {
            edge->doom_reported = true;
            if (consumer->doomed) {
                count_cause(consumer, origin_for(consumer->event, event), edge);
            } else {
                doom(consumer, event);
            }
        }
        if (ended && edge->holds_consumer && !consumer->holds) {
            bhi_stream_wants_pump(consumer->stream);
        }
    }
}

/* Gives back what is left of a submission that has ended. */
static void retire(struct bhi_submission *submission) {
    struct bhi_core_stream *stream = submission->stream;
    const struct bhi_core_ops *ops = stream->core->ops;
    struct bh_event *event = submission->event;
    if (!bhi_list_empty(&stream->queue)) {
        bhi_stream_wants_pump(stream); /* it may have blocked the next one in the queue */
    }
    drop(submission);
    submission->event = NULL;
    ops->free_submission(submission);
    bhi_event_unref(event);
    ops->unref_stream(stream);
}

static void ripple_on(struct bhi_submission *submission) {
    bhi_list_remove(&submission->ripple);
    if (submission->state != BHI_ENDED) {
        end_early(submission);
    }
    bool poisoned = submission->doomed || submission->event->verdict.status != BH_OK;
    if (poisoned && !submission->failure_reported) {
        submission->failure_reported = true;
        bhi_stream_failed(submission->stream, submission->event);
    }
    tell_dependents(submission);
    if (submission->state == BHI_ENDED) {
        retire(submission);
    }
}

/* Work lists, not recursion: chains of dependents can be long. */
static void run_ripples(struct bhi_core *core) {
    if (core->rippling) {
        return;
    }
    core->rippling = true;
    for (;;) {
        if (!bhi_list_empty(&core->ripples)) {
            ripple_on(BHI_CONTAINER(core->ripples.next, struct bhi_submission, ripple));
        } else if (!bhi_list_empty(&core->sweeps)) {
            struct bhi_core_stream *stream =
                BHI_CONTAINER(core->sweeps.next, struct bhi_core_stream, sweep_link);
            bhi_list_remove(&stream->sweep_link);
            bhi_stream_sweep(stream);
        } else {
            break;
        }
    }
    core->rippling = false;
}

void bhi_submission_end(struct bhi_submission *submission, const struct bhi_outcome *outcome) {
    struct bhi_core *core = submission->stream->core;
    struct bh_verdict *verdict = &submission->event->verdict;
    if (submission->doomed) {
        verdict->executed = outcome->executed;
        verdict->started_ns = outcome->started_ns;
        verdict->device_ns = outcome->device_ns;
        verdict->ended_ns = outcome->ended_ns ? outcome->ended_ns : core->ops->now_ns(core);
        /* The failure of a doomed submission is one more cause (E7). A skipped submission has not
         * failed. */
        if (outcome->status != BH_OK && outcome->status != BH_CANCELLED) {
            count_cause(submission, outcome->origin ? outcome->origin : verdict->event, NULL);
        }
    } else {
        judge(submission, outcome);
    }
    publish(submission);
    ripple(submission);
    run_ripples(core);
}

struct bhi_outcome bhi_outcome_unstarted(const bh_detail *why, uint64_t ended_ns) {
    struct bhi_outcome outcome = BHI_OUTCOME_INIT;
    outcome.status = why->status;
    outcome.reason = why->reason;
    outcome.subject = why->subject;
    outcome.subject_name = why->subject_name;
    outcome.value = why->value;
    outcome.limit = why->limit;
    outcome.sys_errno = why->sys_errno;
    outcome.executed = BH_EXECUTED_NO;
    outcome.ended_ns = ended_ns;
    outcome.message = why->message;
    return outcome;
}

void bhi_submission_end_unstarted(struct bhi_submission *submission, bh_status status,
                                  const char *message, const struct bhi_core_worker *worker) {
    struct bhi_core *core = submission->stream->core;
    struct bhi_outcome outcome =
        bhi_outcome_unstarted(&(bh_detail){.status = status}, core->ops->now_ns(core));
    outcome.worker_pid = worker ? worker->pid : 0;
    outcome.device = worker ? worker->device : NULL;
    outcome.message = message;
    bhi_submission_end(submission, &outcome);
}

void bhi_submission_end_unavailable(struct bhi_submission *submission, const bh_detail *why) {
    struct bhi_core *core = submission->stream->core;
    const struct bhi_outcome outcome = bhi_outcome_unstarted(why, core->ops->now_ns(core));
    bhi_submission_end(submission, &outcome);
}

void bhi_submission_fail_strict(struct bhi_submission *submission, const struct bh_event *failure) {
    if (submission->doomed || submission->event->library) {
        return;
    }
    doom(submission, failure);
    submission->event->verdict.status = BH_STREAM_FAILED;
    tell(submission->event, failure,
         "the strict stream %s failed with event %llu: ", submission->stream->name,
         (unsigned long long)failure->id);
    run_ripples(submission->stream->core);
}

/* -- queueing --------------------------------------------------------------------------------- */

/* Returns the doomed producer with the earliest origin among the data dependencies, or NULL. Marks
 * all doomed edges as reported. *out_others is the number of other origins. */
static struct bh_event *cause_of(struct bhi_submission *submission, uint32_t *out_others) {
    struct bh_event *first = NULL;
    struct bhi_idset origins = {0};
    uint32_t uncounted = 0;
    for (uint32_t i = 0; i < submission->edge_count; i++) {
        struct bhi_edge *edge = &submission->edges[i];
        struct bh_event *producer = edge->producer;
        if (!edge->data || !bhi_event_doomed(producer)) {
            continue;
        }
        edge->doom_reported = true;
        if (!first || producer->origin_tick < first->origin_tick ||
            (producer->origin_tick == first->origin_tick &&
             producer->verdict.hops < first->verdict.hops)) {
            first = producer;
        }
        if (bhi_idset_reserve(&origins, 1)) {
            bhi_idset_add(&origins, origin_for(submission->event, producer));
        } else {
            uncounted++;
        }
    }
    *out_others = first ? (uint32_t)origins.map.count + uncounted - 1 : 0;
    bhi_idset_fini(&origins);
    return first;
}

void bhi_submission_enqueue(struct bhi_submission *submission) {
    struct bhi_core_stream *stream = submission->stream;
    struct bhi_core *core = stream->core;
    core->newest = submission->event->id;
    core->ops->ref_stream(stream);
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const struct bhi_use *use = &submission->uses[i];
        bhi_content_used(use->content, stream, submission->event, use->reads, use->writes,
                         use->overwrites);
    }
    bhi_list_append(&stream->queue, &submission->link);
    stream->queued++;
    bhi_stream_heal(stream);
    uint32_t others = 0;
    struct bhi_outcome refusal;
    const struct bh_event *cause = cause_of(submission, &others);
    if (cause) {
        doom(submission, cause);
        submission->event->verdict.other_causes = others;
        run_ripples(core);
    } else if (stream->strict && stream->failure && !submission->event->library) {
        bhi_submission_fail_strict(submission, stream->failure);
    } else if (core->ops->refuse(submission, &refusal)) {
        bhi_submission_end(submission, &refusal);
    } else if (stream->state == BHI_STREAM_UNAVAILABLE) {
        bhi_submission_end_unavailable(submission, &stream->trouble);
    } else {
        bhi_stream_wants_pump(stream);
    }
}

/* Ends the submission if it has not begun. Returns false if it has. */
static bool cancel_unstarted(struct bhi_submission *submission) {
    struct bhi_core_worker *worker = submission->state == BHI_QUEUED ? NULL : submission->worker;
    if (worker && !bhi_core_worker_withdraw(worker, submission)) {
        return false;
    }
    submission->cancel_requested = true;
    bhi_submission_end_unstarted(submission, BH_CANCELLED, BHI_CANCELLED_UNSTARTED, worker);
    return true;
}

#define MOST_DEATHS 8u

bool bhi_submission_again(const struct bhi_submission *submission, enum bhi_repeat least) {
    const bool unwanted =
        submission->cancel_requested || submission->skip_requested || submission->doomed;
    return submission->repeat >= least && submission->deaths < MOST_DEATHS &&
           (!unwanted || least == BHI_REPEAT_NEVER);
}

void bhi_submission_let_go(struct bhi_submission *submission) {
    if (!cancel_unstarted(submission) && submission->worker->life.kill != BHI_KILL_NONE) {
        submission->cancel_requested = true; /* so that it does not run again */
    }
}

void bhi_submission_cancel(struct bhi_submission *submission) {
    if (cancel_unstarted(submission)) {
        return;
    }
    submission->cancel_requested = true;
    struct bhi_core_worker *worker = submission->worker;
    /* The submission runs, or will run next. The worker is killed only when its turn has come, so
     * that the kill hurts no submission before it; those behind it start again on another worker
     * (E13). */
    bhi_submission_notify(submission);
    bhi_core_worker_hasten(worker, submission);
}

/* Returns what keeps a submission in its queue: its producer on another stream, or the head of the
 * queue. NULL: neither. */
static struct bhi_submission *held_by(const struct bhi_submission *submission) {
    for (uint32_t i = 0; submission->holds && i < submission->edge_count; i++) {
        const struct bhi_edge *edge = &submission->edges[i];
        if (edge->holds_consumer && edge->producer->submission) {
            return edge->producer->submission;
        }
    }
    struct bhi_list *queue = &submission->stream->queue;
    struct bhi_submission *head =
        bhi_list_empty(queue) ? NULL : BHI_CONTAINER(queue->next, struct bhi_submission, link);
    return head != submission ? head : NULL;
}

#define LONGEST_LOOK 16 /* submissions; this limits how long the lock is held */

struct bhi_submission *bhi_submission_in_lane(struct bhi_submission *submission) {
    for (int i = 0; submission && submission->state == BHI_QUEUED && i < LONGEST_LOOK; i++) {
        submission = held_by(submission);
    }
    return submission && submission->state == BHI_RELEASED ? submission : NULL;
}

void bhi_submission_notify(struct bhi_submission *submission) {
    if (submission->end_watched) {
        return;
    }
    submission->end_watched = true;
    if (submission->state == BHI_RELEASED) {
        submission->worker->core->ops->notify(submission->worker);
    }
}
