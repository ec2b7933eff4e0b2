#include "supervisor/event/event.h"
#include "base/detail.h"
#include "base/format.h"
#include "base/futex.h"
#include "base/step_point.h"
#include "core/submission.h"
#include "supervisor/context/context.h"
#include "supervisor/context/freelist.h"
#include "supervisor/context/layout.h"
#include "supervisor/event/harvest.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static struct bhi_freelist freelist = BHI_FREELIST_INIT(struct bh_event);

struct bh_event *bhi_event_create(bh_context *context) {
    struct bh_event *event = bhi_freelist_take(&freelist);
    if (!event) {
        return NULL;
    }
    bhi_event_init(event, &context->core);
    atomic_init(&event->handle.count, 0);
    atomic_init(&event->sleepers, 0);
    bhi_list_init(&event->pending_link);
    event->context = context;
    bhi_context_retain(context);
    return event;
}

void bhi_event_free(struct bh_event *event) {
    bh_context *context = event->context;
    bhi_freelist_give(&freelist, event);
    bhi_context_unref(context);
}

/* The caller has changed the event's word; then come the fence and the load of |sleepers|. A
 * sleeper increments |sleepers|, fences, and then looks at the word. So at least one of them sees
 * the other. */
static void wake_sleepers(struct bh_event *event) {
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&event->sleepers, memory_order_relaxed)) {
        bhi_futex_wake(&event->word, false, INT_MAX);
    }
}

void bhi_event_turned(struct bh_event *event) {
    atomic_fetch_add_explicit(&event->word, BHI_EVENT_TURN, memory_order_relaxed);
    wake_sleepers(event);
}

void bhi_event_look(struct bh_event *event) {
    struct bhi_submission *submission = bhi_submission_in_lane(event->submission);
    if (submission) {
        bhi_worker_harvest(bhi_worker_of(submission->worker));
    }
}

bool bhi_event_observe(struct bh_event *event, struct bhi_observer *observer) {
    bhi_event_look(event);
    return bhi_observer_join(observer, event);
}

void bhi_event_ended(struct bh_event *event) {
    wake_sleepers(event);
    bhi_list_remove(&event->pending_link);
    bhi_observers_tell(event);
}

/* Sleeps until the event's word or the worker's completed word changes. Returns false if the
 * deadline has passed. A death of the worker also changes the event's word, because the reactor
 * then poisons the event or queues its submission again. */
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
    if (worker) {
        atomic_fetch_sub(&worker->lane.header->waiters, 1);
    }
    atomic_fetch_sub(&event->sleepers, 1);
    return result == 0;
}

/* |next|: the event's result is the worker's next one. Only then the thread spins before it sleeps,
 * and only if spinning has lately been worthwhile. While other results come first, spinning would
 * only take processor time from the worker. */
static bool spin_or_sleep(struct bh_event *event, uint32_t word, struct bhi_worker *worker,
                          bool next, uint32_t seen, uint64_t deadline_ns) {
    if (!next) {
        return sleep_for(event, word, worker, seen, deadline_ns);
    }
    uint64_t began_ns = bhi_now_ns();
    if (bhi_spin_wait(&worker->stream_spin, &worker->progress.header->completed_word, seen)) {
        return true;
    }
    bool in_time = sleep_for(event, word, worker, seen, deadline_ns);
    /* Failed spins have lowered the budget. With the full budget this one would have succeeded, so
     * the full budget is restored. */
    if (bhi_now_ns() - began_ns < BHI_SPIN_MAX_NS) {
        atomic_store_explicit(&worker->stream_spin.budget_ns, BHI_SPIN_MAX_NS,
                              memory_order_relaxed);
    }
    return in_time;
}

bh_status bhi_event_await(struct bh_event *event, uint64_t deadline_ns) {
    bh_context *context = event->context;
    for (;;) {
        if (bhi_event_state(event) != BH_EVENT_PENDING) {
            return BH_OK;
        }
        /* This thread watches a worker's progress itself: of the worker that has the submission or,
         * while the submission is queued, of the worker that has a submission that it waits for. So
         * this thread releases the queued submission itself, and need not wait for the reactor. */
        struct bhi_worker *worker = NULL;
        uint32_t seen = 0;
        bool next = false;
        BHI_STEP_POINT("await_due", event);
        bhi_context_lock(context);
        uint32_t word = atomic_load_explicit(&event->word, memory_order_relaxed);
        struct bhi_submission *submission = bhi_submission_in_lane(event->submission);
        if (submission) {
            worker = bhi_worker_of(submission->worker);
            bhi_worker_retain(worker);
            seen = atomic_load_explicit(&worker->progress.header->completed_word,
                                        memory_order_acquire);
            bhi_worker_harvest(worker);
            submission = bhi_submission_in_lane(event->submission);
            next = submission && bhi_worker_of(submission->worker) == worker &&
                   submission->seq == worker->core.harvested + 1;
        }
        bhi_context_pump_unlock(context);
        bool in_time = true;
        if (bhi_event_state(event) == BH_EVENT_PENDING && bhi_in_callback() &&
            bhi_now_ns() < deadline_ns) {
            bhi_worker_release(worker);
            return BH_IN_CALLBACK;
        }
        /* If the word has changed, the submission may have been released just now, and another
         * worker is to be watched. */
        if (bhi_event_state(event) == BH_EVENT_PENDING &&
            atomic_load_explicit(&event->word, memory_order_relaxed) == word) {
            in_time = spin_or_sleep(event, word, worker, next, seen, deadline_ns);
        }
        bhi_worker_release(worker);
        /* Also checked after a wake-up, because a worker can wake this thread again and again. */
        if (in_time && deadline_ns != BHI_FOREVER) {
            in_time = bhi_now_ns() < deadline_ns;
        }
        if (!in_time && bhi_event_state(event) == BH_EVENT_PENDING) {
            /* Look once more: the worker may have completed it just before the deadline. */
            bhi_context_lock(context);
            bhi_event_look(event);
            bhi_context_pump_unlock(context);
            return bhi_event_state(event) == BH_EVENT_PENDING ? BH_TIMEOUT : BH_OK;
        }
    }
}

BH_API bh_status bh_event_wait(bh_event *event, uint64_t timeout_ns) {
    if (!BHI_LIVE(event)) {
        return BH_INVALID_ARGUMENT;
    }
    if (bhi_event_state(event) == BH_EVENT_PENDING) {
        if (bhi_context_forked(event->context)) {
            return BH_FORKED;
        }
        BHI_TRY(bhi_event_await(event, bhi_deadline_ns(timeout_ns)));
    }
    return event->verdict.status;
}

bh_status bhi_event_report(const struct bh_event *event, bh_detail *detail, const char *call,
                           const char *what) {
    const struct bh_verdict *verdict = &event->verdict;
    const bool named = verdict->kernel_name[0];
    char said[sizeof verdict->message + 200];
    /* In a dependent's verdict the kernel is that of its origin, so it is named after the message,
     * which is about the origin, too. */
    bhi_format(said, sizeof said, "%s %llu of stream %s%s%s: %.250s%s%s%s", what,
               (unsigned long long)event->id, verdict->stream_name,
               named && !verdict->hops ? ", kernel " : "",
               verdict->hops ? "" : verdict->kernel_name, verdict->message,
               named && verdict->hops ? " (kernel " : "", verdict->hops ? verdict->kernel_name : "",
               named && verdict->hops ? ")" : "");
    return BHI_FAIL(detail, call, verdict->reason, verdict->subject_name,
                    .subject = verdict->subject, .status = verdict->status, .said = said,
                    .value = verdict->value, .limit = verdict->limit,
                    .vk_result = verdict->vk_result);
}

/* Somebody has killed its worker, or had stopped it, and nobody is blamed for it. */
static bool was_killed_by_others(const bh_verdict *verdict) {
    return verdict->signal && verdict->blame == BH_BLAME_NONE;
}

BH_API bh_status_class bh_verdict_classify(const bh_verdict *verdict) {
    if (!verdict) {
        return BH_STATUS_CLASS_NONE;
    }
    if (verdict->hops || was_killed_by_others(verdict)) {
        return BH_STATUS_CLASS_VICTIM;
    }
    return bh_status_classify(verdict->status);
}

BH_API bh_event_state bh_event_query(bh_event *event) {
    if (!BHI_LIVE(event)) {
        return BH_EVENT_POISONED;
    }
    bh_event_state state = bhi_event_state(event);
    if (state != BH_EVENT_PENDING || bhi_context_forked(event->context)) {
        return state;
    }
    bh_context *context = event->context;
    bhi_context_lock(context);
    bhi_event_look(event);
    bhi_context_pump_unlock(context);
    return bhi_event_state(event);
}

BH_API bh_status bh_event_verdict(bh_event *event, bh_verdict *out_verdict) {
    if (!BHI_LIVE(event) ||
        bhi_layout_check(BHI_OURS(bh_verdict), out_verdict, "", "", NULL) != BH_OK) {
        return BH_INVALID_ARGUMENT;
    }
    if (bh_event_query(event) == BH_EVENT_PENDING) {
        return bhi_context_forked(event->context) ? BH_FORKED : BH_PENDING;
    }
    bhi_layout_give(out_verdict, &event->verdict, sizeof event->verdict);
    return BH_OK;
}

BH_API bh_status bh_event_cancel(bh_event *event) {
    if (!BHI_LIVE(event)) {
        return BH_INVALID_ARGUMENT;
    }
    if (bhi_event_state(event) != BH_EVENT_PENDING) {
        return BH_OK;
    }
    if (bhi_context_forked(event->context)) {
        return BH_FORKED;
    }
    bh_context *context = event->context;
    bhi_context_lock(context);
    if (event->submission) {
        bhi_submission_cancel(event->submission);
    }
    bhi_context_pump_unlock(context);
    return BH_OK;
}

BH_API uint64_t bh_event_id(const bh_event *event) {
    return BHI_LIVE(event) ? event->id : 0;
}

BH_API void bh_event_retain(bh_event *event) {
    if (event) {
        (void)bhi_handle_retain(&event->handle);
    }
}

BH_API void bh_event_release(bh_event *event) {
    if (event && bhi_context_drop(&event->handle, event->context)) {
        bhi_event_unref(event);
    }
}
