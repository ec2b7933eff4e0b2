#include "event.h"
#include "check.h"
#include "context.h"
#include "futex.h"
#include "step_point.h"
#include "stream.h"
#include "submission.h"
#include "worker_proc.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct bh_event *bhi_event_create(bh_context *context) {
    struct bh_event *event = malloc(sizeof *event);
    if (!event)
        return NULL;
    /* The texts in the verdict are long and rarely used: only their first bytes are cleared. */
    atomic_init(&event->refs, 1);
    atomic_init(&event->word, BH_EVENT_PENDING);
    atomic_init(&event->sleepers, 0);
    event->id = 0;
    event->submission = NULL;
    bhi_list_init(&event->dependents);
    event->origin_ns = 0;
    event->visit = 0;
    event->verdict.kernel_name[0] = 0;
    event->verdict.stream_name[0] = 0;
    event->verdict.message[0] = 0;
    event->context = context;
    bhi_context_retain(context);
    return event;
}

/* Store, full fence, load: a sleeper counts itself, fences and looks at the word. */
static void wake_sleepers(struct bh_event *event) {
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&event->sleepers, memory_order_relaxed))
        bhi_futex_wake(&event->word, false, INT_MAX);
}

void bhi_event_turn(struct bh_event *event) {
    atomic_fetch_add_explicit(&event->word, BHI_EVENT_TURN, memory_order_relaxed);
    wake_sleepers(event);
}

void bhi_event_publish(struct bh_event *event) {
    BHI_CHECK(bhi_event_state(event) == BH_EVENT_PENDING);
    event->submission = NULL;
    BHI_STEP_POINT("event_due", event);
    uint32_t state = event->verdict.status == BH_OK ? BH_EVENT_READY : BH_EVENT_POISONED;
    atomic_store_explicit(&event->word, state, memory_order_release);
    wake_sleepers(event);
    bh_context *context = event->context;
    atomic_fetch_add_explicit(&context->any_word, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&context->any_sleepers, memory_order_seq_cst))
        bhi_futex_wake(&context->any_word, false, INT_MAX);
}

/* Sleeps until the event's word or the worker's completed word changes. A worker's death shows in
 * the former: the reactor poisons what is left, or puts it back. */
static bool sleep_for(struct bh_event *event, uint32_t word, struct bhi_worker *worker,
                      uint32_t seen, uint64_t deadline_ns) {
    struct bhi_futex_wait waits[2] = {{&event->word, word, false}};
    size_t count = 1;
    atomic_fetch_add(&event->sleepers, 1);
    if (worker) {
        atomic_fetch_add(&worker->lane.header->waiters, 1);
        waits[count++] =
            (struct bhi_futex_wait){&worker->progress.header->completed_word, seen, true};
    }
    atomic_thread_fence(memory_order_seq_cst);
    int result = count == 1 ? bhi_futex_wait(waits[0].word, waits[0].expected, false, deadline_ns)
                            : bhi_futex_wait_any(waits, count, deadline_ns);
    if (worker)
        atomic_fetch_sub(&worker->lane.header->waiters, 1);
    atomic_fetch_sub(&event->sleepers, 1);
    return result == 0;
}

/* Spins first where that has paid lately, for the next result only: while several are to come, what
 * the worker needs is the processor. */
static bool spin_or_sleep(struct bh_event *event, uint32_t word, struct bhi_worker *worker,
                          bool next, uint32_t seen, uint64_t deadline_ns) {
    if (!next)
        return sleep_for(event, word, worker, seen, deadline_ns);
    uint64_t began_ns = bhi_now_ns();
    if (bhi_spin_wait(&worker->stream_spin, &worker->progress.header->completed_word, seen))
        return true;
    bool in_time = sleep_for(event, word, worker, seen, deadline_ns);
    /* Misses have lowered the budget; had it been the full one, this would have been a hit. */
    if (bhi_now_ns() - began_ns < BHI_SPIN_MAX_NS)
        atomic_store_explicit(&worker->stream_spin.budget_ns, BHI_SPIN_MAX_NS,
                              memory_order_relaxed);
    return in_time;
}

bh_status bhi_event_await(struct bh_event *event, uint64_t deadline_ns) {
    bh_context *context = event->context;
    for (;;) {
        if (bhi_event_state(event) != BH_EVENT_PENDING)
            return BH_OK;
        /* Where the submission is in a lane, this thread follows its worker's progress itself. */
        struct bhi_worker *worker = NULL;
        uint32_t seen = 0;
        bool next = false;
        bhi_context_lock(context);
        uint32_t word = atomic_load_explicit(&event->word, memory_order_relaxed);
        struct bhi_submission *submission = event->submission;
        if (submission && submission->state == BHI_RELEASED) {
            worker = submission->worker;
            bhi_worker_retain(worker);
            seen = atomic_load_explicit(&worker->progress.header->completed_word,
                                        memory_order_acquire);
            bhi_worker_harvest(worker);
            submission = event->submission;
            next = submission && submission->record->seq == worker->harvested + 1;
        }
        bhi_context_unlock(context);
        bool in_time = true;
        if (bhi_event_state(event) == BH_EVENT_PENDING)
            in_time = spin_or_sleep(event, word, worker, next, seen, deadline_ns);
        bhi_worker_release(worker);
        /* A word that changes all the time, as a worker may well arrange, keeps nobody past it. */
        if (in_time && deadline_ns != BHI_FOREVER)
            in_time = bhi_now_ns() < deadline_ns;
        if (!in_time && bhi_event_state(event) == BH_EVENT_PENDING) {
            /* What ended just before the deadline counts: look once more. */
            bhi_context_lock(context);
            if (event->submission && event->submission->state == BHI_RELEASED)
                bhi_worker_harvest(event->submission->worker);
            bhi_context_unlock(context);
            return bhi_event_state(event) == BH_EVENT_PENDING ? BH_TIMEOUT : BH_OK;
        }
    }
}

BH_API bh_status bh_event_wait(bh_event *event, uint64_t timeout_ns) {
    if (!event)
        return BH_INVALID_ARGUMENT;
    if (bhi_event_state(event) == BH_EVENT_PENDING) {
        if (bhi_context_forked(event->context))
            return BH_FORKED;
        if (bhi_event_await(event, bhi_deadline_ns(timeout_ns)) == BH_TIMEOUT)
            return BH_TIMEOUT;
    }
    return event->verdict.status;
}

/* Index of the first that has ended; |count| if none has. */
static size_t first_ended(bh_event *const *events, size_t count) {
    size_t i = 0;
    while (i < count && bhi_event_state(events[i]) == BH_EVENT_PENDING)
        i++;
    return i;
}

/* Has the reactor notice the ends of all |events| (or no longer), and looks at once. */
static void watch(bh_context *context, bh_event *const *events, size_t count) {
    bhi_context_lock(context);
    for (size_t i = 0; i < count; i++) {
        struct bhi_submission *submission = events[i]->submission;
        if (events[i]->context != context || !submission)
            continue;
        bhi_submission_notify(submission);
        if (submission->state == BHI_RELEASED)
            bhi_worker_harvest(submission->worker);
    }
    bhi_context_unlock(context);
}

BH_API bh_status bh_event_wait_any(bh_event *const *events, size_t count, uint64_t timeout_ns,
                                   size_t *out_index) {
    if (!events || !count || !out_index)
        return BH_INVALID_ARGUMENT;
    for (size_t i = 0; i < count; i++)
        if (!events[i] || events[i]->context != events[0]->context)
            return BH_INVALID_ARGUMENT;
    *out_index = first_ended(events, count);
    if (*out_index < count)
        return BH_OK;
    bh_context *context = events[0]->context;
    if (bhi_context_forked(context))
        return BH_FORKED;
    uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
    if (count == 1) {
        *out_index = 0;
        return bhi_event_await(events[0], deadline_ns);
    }
    atomic_fetch_add(&context->any_sleepers, 1);
    watch(context, events, count);
    bh_status status = BH_OK;
    for (;;) {
        uint32_t seen = atomic_load(&context->any_word);
        *out_index = first_ended(events, count);
        if (*out_index < count)
            break;
        if (bhi_futex_wait(&context->any_word, seen, false, deadline_ns) == -ETIMEDOUT ||
            bhi_now_ns() >= deadline_ns) {
            watch(context, events, count);
            *out_index = first_ended(events, count);
            status = *out_index < count ? BH_OK : BH_TIMEOUT;
            break;
        }
    }
    atomic_fetch_sub(&context->any_sleepers, 1);
    return status;
}

BH_API bh_event_state bh_event_query(bh_event *event) {
    if (!event)
        return BH_EVENT_PENDING;
    bh_event_state state = bhi_event_state(event);
    if (state != BH_EVENT_PENDING || bhi_context_forked(event->context))
        return state;
    bh_context *context = event->context;
    bhi_context_lock(context);
    if (event->submission && event->submission->state == BHI_RELEASED)
        bhi_worker_harvest(event->submission->worker);
    bhi_context_unlock(context);
    return bhi_event_state(event);
}

BH_API bh_status bh_event_verdict(bh_event *event, bh_verdict *out_verdict) {
    if (!event || !out_verdict)
        return BH_INVALID_ARGUMENT;
    if (bh_event_query(event) == BH_EVENT_PENDING)
        return bhi_context_forked(event->context) ? BH_FORKED : BH_PENDING;
    *out_verdict = event->verdict;
    return BH_OK;
}

BH_API bh_status bh_event_cancel(bh_event *event) {
    if (!event)
        return BH_INVALID_ARGUMENT;
    if (bhi_event_state(event) != BH_EVENT_PENDING)
        return BH_OK;
    if (bhi_context_forked(event->context))
        return BH_FORKED;
    bh_context *context = event->context;
    bhi_context_lock(context);
    if (event->submission)
        bhi_stream_cancel(event->submission);
    bhi_context_unlock(context);
    return BH_OK;
}

BH_API uint64_t bh_event_id(const bh_event *event) {
    return event ? event->id : 0;
}

BH_API void bh_event_retain(bh_event *event) {
    if (event)
        atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
}

BH_API void bh_event_release(bh_event *event) {
    if (!event || bhi_context_forked(event->context))
        return;
    if (atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) != 1)
        return;
    /* A pending event is referenced by its submission, so this one has ended. */
    BHI_CHECK(!event->submission && bhi_list_empty(&event->dependents));
    bh_context *context = event->context;
    free(event);
    bhi_context_unref(context);
}
