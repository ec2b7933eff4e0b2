#include "submission.h"
#include "buffer.h"
#include "check.h"
#include "commands.h"
#include "context.h"
#include "event.h"
#include "futex.h"
#include "kernel.h"
#include "stream.h"
#include "worker_proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Drops everything that the submission held for its run (B2: exactly once, at its own end). */
static void drop(struct bhi_submission *submission) {
    for (uint32_t i = 0; i < submission->edge_count; i++) {
        struct bhi_edge *edge = &submission->edges[i];
        bhi_list_remove(&edge->link);
        bh_event_release(edge->producer);
    }
    for (uint32_t i = 0; i < submission->use_count; i++)
        bhi_buffer_unref_locked(submission->uses[i].buffer);
    for (uint32_t i = 0; i < submission->kernel_count; i++)
        bhi_kernel_unref_locked(submission->kernels[i]);
    free(submission->edges);
    free(submission->uses);
    free(submission->kernels);
    free(submission->record);
}

void bhi_submission_free(struct bhi_submission *submission) {
    drop(submission);
    bh_event *event = submission->event;
    free(submission);
    if (event) {
        event->submission = NULL;
        bh_event_release(event);
    }
}

bool bhi_submission_depend(struct bhi_submission *consumer, struct bh_event *producer, bool data) {
    bh_event_state state = bhi_event_state(producer);
    if (state == BH_EVENT_READY || (state == BH_EVENT_POISONED && !data))
        return true;
    if (producer->visit == consumer->event->id) {
        consumer->edges[producer->visit_index].data |= data;
        return true;
    }
    if (consumer->edge_count == consumer->edge_capacity) {
        /* The edges are in lists: they must be taken out and put back when they move. */
        uint32_t capacity = consumer->edge_capacity ? 2 * consumer->edge_capacity : 4;
        struct bhi_edge *edges = malloc(capacity * sizeof *edges);
        if (!edges)
            return false;
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
    }
    producer->visit = consumer->event->id;
    producer->visit_index = consumer->edge_count;
    struct bhi_edge *edge = &consumer->edges[consumer->edge_count++];
    *edge = (struct bhi_edge){.producer = producer, .consumer = consumer, .data = data};
    bh_event_retain(producer);
    bhi_list_init(&edge->link);
    if (state == BH_EVENT_PENDING) {
        bhi_list_append(&producer->dependents, &edge->link);
        /* On the same stream the lane keeps the order; across streams the supervisor does (E15). */
        edge->hold = producer->submission->stream != consumer->stream;
        if (edge->hold) {
            consumer->holds++;
            bhi_submission_notify(producer->submission);
        }
    }
    return true;
}

void bhi_submission_notify(struct bhi_submission *submission) {
    if (submission->notify)
        return;
    submission->notify = true;
    if (submission->state == BHI_RELEASED)
        bhi_worker_notify(submission->worker);
}

struct bh_event *bhi_submission_poisoned_by(const struct bhi_submission *submission,
                                            uint32_t *out_others) {
    struct bh_event *first = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < submission->edge_count; i++) {
        const struct bhi_edge *edge = &submission->edges[i];
        if (!edge->data || bhi_event_state(edge->producer) != BH_EVENT_POISONED)
            continue;
        count++;
        if (!first || edge->producer->origin_ns < first->origin_ns ||
            (edge->producer->origin_ns == first->origin_ns &&
             edge->producer->verdict.origin < first->verdict.origin))
            first = edge->producer;
    }
    *out_others = count ? count - 1 : 0;
    return first;
}

struct bh_kernel *bhi_submission_kernel(const struct bhi_submission *submission,
                                        uint32_t command_index) {
    const struct bhi_cmd_header *command = bhi_record_first(submission->record);
    for (uint32_t i = 0; command && i < command_index; i++)
        command = bhi_record_next(submission->record, command);
    if (!command)
        return NULL;
    uint64_t id = 0;
    if (command->type == BHI_CMD_DISPATCH)
        id = ((const struct bhi_cmd_dispatch *)(const void *)command)->kernel;
    else if (command->type == BHI_CMD_PREPARE)
        id = ((const struct bhi_cmd_prepare *)(const void *)command)->kernel;
    for (uint32_t i = 0; i < submission->kernel_count; i++)
        if (submission->kernels[i]->id == id)
            return submission->kernels[i];
    return NULL;
}

/* The verdict of a submission that ended by itself, well or badly. */
static void judge(struct bhi_submission *submission, const struct bhi_outcome *outcome) {
    struct bh_event *event = submission->event;
    struct bh_verdict *verdict = &event->verdict;
    verdict->status = outcome->status;
    verdict->executed = outcome->executed;
    verdict->signal = outcome->signal;
    verdict->exit_code = outcome->exit_code;
    verdict->vk_result = outcome->vk_result;
    verdict->sys_errno = outcome->sys_errno;
    verdict->event = event->id;
    verdict->origin = outcome->origin ? outcome->origin : event->id;
    verdict->hops = 0;
    verdict->other_causes = 0;
    verdict->command_index = outcome->command_index;
    verdict->worker_pid = outcome->worker_pid;
    verdict->limit = outcome->limit;
    verdict->started_ns = outcome->started_ns;
    verdict->ended_ns = outcome->ended_ns;
    memset(verdict->kernel_hash, 0, sizeof verdict->kernel_hash);
    /* With one kernel only there is no doubt which one it was. */
    struct bh_kernel *kernel = outcome->command_index != BH_NO_COMMAND
                                   ? bhi_submission_kernel(submission, outcome->command_index)
                               : submission->kernel_count == 1 ? submission->kernels[0]
                                                               : NULL;
    if (kernel) {
        memcpy(verdict->kernel_name, kernel->name, sizeof verdict->kernel_name);
        memcpy(verdict->kernel_hash, kernel->hash, sizeof verdict->kernel_hash);
    }
    memcpy(verdict->stream_name, submission->stream->name, sizeof verdict->stream_name);
    if (outcome->status != BH_OK) {
        event->origin_ns = outcome->ended_ns;
        snprintf(verdict->message, sizeof verdict->message, "%s",
                 outcome->message && outcome->message[0] ? outcome->message
                                                         : bh_status_text(outcome->status));
    }
}

/* The verdict of a submission that depends on a poisoned one. */
static void inherit(struct bhi_submission *submission, const struct bh_event *cause,
                    uint32_t others, bh_executed executed, uint64_t now_ns) {
    struct bh_event *event = submission->event;
    uint64_t submitted_ns = event->verdict.submitted_ns;
    event->verdict = cause->verdict;
    event->origin_ns = cause->origin_ns;
    event->verdict.event = event->id;
    event->verdict.hops = cause->verdict.hops + 1;
    event->verdict.other_causes = others;
    event->verdict.executed = executed;
    event->verdict.submitted_ns = submitted_ns;
    event->verdict.started_ns = 0;
    event->verdict.ended_ns = now_ns;
    memcpy(event->verdict.stream_name, submission->stream->name, sizeof event->verdict.stream_name);
    const char *why = cause->verdict.message;
    char origin[sizeof cause->verdict.message];
    /* Don't pile up prefixes: the origin's own words follow the last one. */
    const char *words = cause->verdict.hops ? strstr(why, ": ") : NULL;
    snprintf(origin, sizeof origin, "%s", words ? words + 2 : why);
    snprintf(event->verdict.message, sizeof event->verdict.message,
             "depends on event %llu (%u %s away): %.400s",
             (unsigned long long)event->verdict.origin, event->verdict.hops,
             event->verdict.hops == 1 ? "hop" : "hops", origin);
}

/* Everything except the decision: leaves its list, publishes, frees. Dependents that must be
 * poisoned now are appended to |next|. */
static void finish(struct bhi_submission *submission, struct bhi_list *next) {
    struct bh_event *event = submission->event;
    bool poisoned = event->verdict.status != BH_OK;
    submission->state = BHI_ENDED;
    bhi_list_remove(&submission->link);
    bhi_stream_ended(submission);

    /* A pending event never has an ended submission behind it, so publish comes first. */
    bhi_event_publish(event);
    BHI_LIST_EACH_SAFE(node, &event->dependents) {
        struct bhi_edge *edge = BHI_CONTAINER(node, struct bhi_edge, link);
        bhi_list_remove(&edge->link);
        struct bhi_submission *consumer = edge->consumer;
        if (edge->hold) {
            BHI_CHECK(consumer->holds > 0);
            consumer->holds--;
        }
        if (consumer->state != BHI_QUEUED)
            continue; /* in a lane: judged when it completes */
        if (poisoned && edge->data) {
            bhi_list_remove(&consumer->link);
            bhi_list_append(next, &consumer->link);
            consumer->state = BHI_ENDED; /* so that it is appended once */
        } else if (edge->hold && !consumer->holds) {
            bhi_stream_wants_release(consumer->stream);
        }
    }
    bh_stream *stream = submission->stream;
    if (!bhi_list_empty(&stream->queue))
        bhi_stream_wants_release(stream); /* it may have stood in the way of the next one */
    submission->event = NULL;
    drop(submission);
    free(submission);
    bh_event_release(event);
    bhi_stream_unref_locked(stream);
}

void bhi_submission_end(struct bhi_submission *submission, const struct bhi_outcome *outcome) {
    uint32_t others = 0;
    struct bh_event *cause = bhi_submission_poisoned_by(submission, &others);
    struct bhi_list next;
    bhi_list_init(&next);
    if (cause)
        inherit(submission, cause, others, outcome->executed,
                outcome->ended_ns ? outcome->ended_ns : bhi_now_ns());
    else
        judge(submission, outcome);
    finish(submission, &next);
    /* A work list, not recursion: chains of dependents can be long. */
    while (!bhi_list_empty(&next)) {
        struct bhi_submission *dependent = BHI_CONTAINER(next.next, struct bhi_submission, link);
        cause = bhi_submission_poisoned_by(dependent, &others);
        BHI_CHECK(cause);
        inherit(dependent, cause, others, BH_EXECUTED_NO, bhi_now_ns());
        finish(dependent, &next);
    }
}

void bhi_submission_end_unstarted(struct bhi_submission *submission, bh_status status,
                                  const char *message, int32_t worker_pid) {
    struct bhi_outcome outcome = BHI_OUTCOME_INIT;
    outcome.status = status;
    outcome.executed = BH_EXECUTED_NO;
    outcome.worker_pid = worker_pid;
    outcome.ended_ns = bhi_now_ns();
    outcome.message = message;
    bhi_submission_end(submission, &outcome);
}
