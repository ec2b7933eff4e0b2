#include "stream.h"
#include "callback.h"
#include "check.h"
#include "detail.h"
#include "drain.h"
#include "event.h"
#include "futex.h"
#include "reactor.h"
#include "selector.h"
#include "text.h"
#include "worker_proc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_DEADLINE_NS (10ull * 1000000000)
#define DEFAULT_MEMORY      (4ull << 30)
#define MIN_MEMORY          (64ull << 20)
#define FIRST_BACKOFF_NS    (10ull * 1000000)
#define LAST_BACKOFF_NS     (1000ull * 1000000)

BH_API void bh_stream_options_init(bh_stream_options *options) {
    if (options)
        *options = (bh_stream_options){
            .struct_size = sizeof *options,
            .deadline_ns = DEFAULT_DEADLINE_NS,
            .memory_limit = DEFAULT_MEMORY,
        };
}

void bhi_stream_changed(struct bh_stream *stream) {
    atomic_fetch_add(&stream->ready_word, 1);
    bhi_futex_wake(&stream->ready_word, false, INT_MAX);
}

/* Charges an unproductive death. True: the budget is spent. */
static bool over_budget(struct bh_stream *stream, uint64_t now_ns) {
    const struct bhi_context_settings *settings = &stream->context->settings;
    uint64_t cost_ns = settings->restart_window_ns / settings->restart_budget;
    uint64_t credit_ns = stream->credit_ns + (now_ns - stream->credit_at_ns);
    if (credit_ns > settings->restart_window_ns || credit_ns < stream->credit_ns)
        credit_ns = settings->restart_window_ns;
    bool spent = credit_ns < cost_ns;
    stream->credit_ns = spent ? credit_ns : credit_ns - cost_ns;
    stream->credit_at_ns = now_ns;
    return spent;
}

static void refill(struct bh_stream *stream) {
    stream->credit_ns = stream->context->settings.restart_window_ns;
    stream->credit_at_ns = bhi_now_ns();
}

BH_API bh_status bh_stream_create(bh_context *context, const bh_stream_options *options,
                                  bh_stream **out_stream, bh_detail *detail) {
    if (!out_stream)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_stream_create: out_stream is NULL");
    *out_stream = NULL;
    bh_status status = bhi_context_check(context, detail);
    if (status != BH_OK)
        return status;
    bh_stream_options defaults;
    bh_stream_options_init(&defaults);
    if (!options)
        options = &defaults;
    if (options->struct_size != sizeof *options)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_stream_create: options.struct_size is %zu, not %zu: call "
                        "bh_stream_options_init",
                        options->struct_size, sizeof *options);
    if (options->device && strlen(options->device) >= sizeof((struct bh_stream *)0)->device)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_stream_create: options.device is longer than 47 bytes");
    char driver[BHI_DRIVER_NAME];
    uint32_t device_index;
    if (options->device && !bhi_selector_parse(options->device, driver, &device_index))
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_stream_create: options.device '%s' is not DRIVER, DRIVER:INDEX or "
                        "INDEX (bulkhead devices lists them)",
                        options->device);
    if (!options->deadline_ns)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_stream_create: options.deadline_ns is 0");
    if (options->memory_limit && options->memory_limit < MIN_MEMORY)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_stream_create: options.memory_limit %llu is under 64 MiB: no driver "
                        "starts with that",
                        (unsigned long long)options->memory_limit);
    struct bh_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return bhi_fail(detail, BH_NO_MEMORY, ENOMEM, "bh_stream_create");
    atomic_init(&stream->refs, 1);
    stream->context = context;
    bhi_context_retain(context);
    refill(stream);
    stream->deadline_ns = options->deadline_ns;
    stream->memory_limit = options->memory_limit;
    snprintf(stream->device, sizeof stream->device, "%s", options->device ? options->device : "");
    bhi_list_init(&stream->queue);
    bhi_list_init(&stream->release_link);
    bhi_context_lock(context);
    context->stream_serial++;
    if (options->name)
        bhi_text_sanitise(stream->name, sizeof stream->name, options->name, strlen(options->name));
    else
        snprintf(stream->name, sizeof stream->name, "stream-%u", context->stream_serial);
    bhi_list_append(&context->streams, &stream->link);
    context->wake_reactor = true; /* it finds or starts a worker */
    bhi_context_unlock(context);
    *out_stream = stream;
    return BH_OK;
}

BH_API bh_status bh_stream_wait_ready(bh_stream *stream, uint64_t timeout_ns, bh_detail *detail) {
    if (!stream)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_stream_wait_ready: stream is NULL");
    bh_context *context = stream->context;
    if (bhi_context_forked(context))
        return bhi_context_refuse(detail);
    uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
    for (;;) {
        uint32_t seen = atomic_load(&stream->ready_word);
        bhi_context_lock(context);
        bool closed = context->closed;
        enum bhi_stream_state state = stream->state;
        bh_detail trouble = stream->trouble;
        bhi_context_unlock(context);
        if (closed)
            return bhi_fail(detail, BH_CLOSED, 0, "the context is closed");
        if (state == BHI_STREAM_SERVED)
            return BH_OK;
        if (state == BHI_STREAM_UNAVAILABLE) {
            if (detail)
                *detail = trouble;
            return trouble.status;
        }
        if (deadline_ns > bhi_now_ns() &&
            bhi_callback_check("bh_stream_wait_ready", detail) != BH_OK)
            return BH_IN_CALLBACK;
        if (bhi_futex_wait(&stream->ready_word, seen, false, deadline_ns) == -ETIMEDOUT)
            return bhi_fail(detail, BH_TIMEOUT, 0,
                            "bh_stream_wait_ready: no worker was ready in time%s%s",
                            trouble.message[0] ? "; the last start failed: " : "", trouble.message);
    }
}

BH_API bh_status bh_stream_synchronize(bh_stream *stream, uint64_t timeout_ns, bh_detail *detail) {
    if (!stream)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_stream_synchronize: stream is NULL");
    bh_context *context = stream->context;
    if (bhi_context_forked(context))
        return bhi_context_refuse(detail);
    uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
    bhi_context_lock(context);
    uint64_t last = context->next_id; /* event ids are given in the order of submission */
    for (;;) {
        struct bhi_list *lists[] = {stream->worker ? &stream->worker->inflight : NULL,
                                    &stream->queue};
        struct bh_event *pending = NULL;
        for (size_t i = 0; i < 2 && !pending; i++) {
            if (!lists[i] || bhi_list_empty(lists[i]))
                continue;
            pending = BHI_CONTAINER(lists[i]->next, struct bhi_submission, link)->event;
        }
        if (!pending || pending->id > last)
            break;
        bh_event_retain(pending);
        bhi_context_unlock(context);
        bh_status status = bhi_event_await(pending, deadline_ns);
        bh_event_release(pending);
        if (status != BH_OK)
            return bhi_fail(detail, status, 0, "bh_stream_synchronize: not all has ended");
        bhi_context_lock(context);
    }
    bh_status status = BH_OK;
    if (stream->failure)
        status =
            bhi_fail(detail, stream->failure->verdict.status, 0, "event %llu: %.460s",
                     (unsigned long long)stream->failure->id, stream->failure->verdict.message);
    bhi_context_unlock(context);
    return status;
}

BH_API bh_status bh_stream_reset(bh_stream *stream, bh_detail *detail) {
    if (!stream)
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_stream_reset: stream is NULL");
    bh_status status = bhi_context_check(stream->context, detail);
    if (status != BH_OK)
        return status;
    bh_context *context = stream->context;
    bhi_context_lock(context);
    struct bh_event *failure = stream->failure;
    stream->failure = NULL;
    refill(stream);
    stream->failed_starts = 0;
    if (stream->state == BHI_STREAM_UNAVAILABLE) {
        stream->state = BHI_STREAM_WANTING;
        stream->restart_at_ns = 0;
        context->wake_reactor = true;
    }
    bhi_context_unlock(context);
    bh_event_release(failure);
    return BH_OK;
}

BH_API int32_t bh_stream_worker_pid(bh_stream *stream) {
    if (!stream || bhi_context_forked(stream->context))
        return 0;
    bhi_context_lock(stream->context);
    int32_t pid = stream->state == BHI_STREAM_SERVED ? stream->worker->pid : 0;
    bhi_context_unlock(stream->context);
    return pid;
}

BH_API void bh_stream_retain(bh_stream *stream) {
    if (stream)
        atomic_fetch_add_explicit(&stream->refs, 1, memory_order_relaxed);
}

void bhi_stream_unref_locked(struct bh_stream *stream) {
    if (atomic_fetch_sub_explicit(&stream->refs, 1, memory_order_acq_rel) != 1)
        return;
    /* Every submission on its way holds a reference: there is none. */
    BHI_CHECK(bhi_list_empty(&stream->queue));
    bh_context *context = stream->context;
    if (stream->worker) {
        BHI_CHECK(bhi_list_empty(&stream->worker->inflight));
        stream->worker->stream = NULL;
        bhi_worker_kill(stream->worker, BHI_KILL_RETIRED, 0, "its stream was released");
        bhi_worker_release(stream->worker);
    }
    bhi_list_remove(&stream->link);
    bhi_list_remove(&stream->release_link);
    bhi_drain_inherit(context, stream->failure);
    free(stream->seen_devices);
    free(stream);
    bhi_context_unref(context); /* never the last one: the lock's holder has one */
}

BH_API void bh_stream_release(bh_stream *stream) {
    if (!stream || bhi_context_forked(stream->context))
        return;
    bh_context *context = stream->context;
    bhi_context_retain(context);
    bhi_context_lock(context);
    bhi_stream_unref_locked(stream);
    bhi_context_unlock(context);
    bhi_context_unref(context);
}

void bhi_streams_hold(bh_context *context) {
    BHI_LIST_EACH(node, &context->streams)
    bh_stream_retain(BHI_CONTAINER(node, struct bh_stream, link));
}

void bhi_streams_let_go(bh_context *context) {
    BHI_LIST_EACH_SAFE(node, &context->streams)
    bhi_stream_unref_locked(BHI_CONTAINER(node, struct bh_stream, link));
}

void bhi_stream_wants_release(struct bh_stream *stream) {
    if (bhi_list_empty(&stream->release_link))
        bhi_list_append(&stream->context->releasable, &stream->release_link);
}

void bhi_stream_ended(struct bhi_submission *submission) {
    struct bh_stream *stream = submission->stream;
    struct bh_event *event = submission->event;
    if (event->verdict.status != BH_OK && (!stream->failure || event->id < stream->failure->id)) {
        bh_event_release(stream->failure);
        stream->failure = event;
        bh_event_retain(event);
    }
}

void bhi_stream_drain(struct bh_stream *stream, bh_status status, const char *message) {
    /* The last one to end may take the stream with it. */
    atomic_fetch_add_explicit(&stream->refs, 1, memory_order_relaxed);
    while (!bhi_list_empty(&stream->queue))
        bhi_submission_end_unstarted(BHI_CONTAINER(stream->queue.next, struct bhi_submission, link),
                                     status, message, 0);
    bhi_stream_unref_locked(stream);
}

void bhi_stream_pump(struct bh_stream *stream) {
    struct bhi_worker *worker = stream->worker;
    if (stream->state != BHI_STREAM_SERVED || worker->kill != BHI_KILL_NONE)
        return;
    atomic_fetch_add_explicit(&stream->refs, 1, memory_order_relaxed);
    worker->backlog = false;
    while (!bhi_list_empty(&stream->queue)) {
        struct bhi_submission *next =
            BHI_CONTAINER(stream->queue.next, struct bhi_submission, link);
        if (next->holds)
            break; /* what comes after it waits too: a stream is in order */
        bool no_memory = false;
        if (bhi_worker_publish(worker, next, &no_memory))
            continue;
        if (!no_memory) {
            worker->backlog = true;
            bhi_worker_notify(worker);
            break;
        }
        bhi_submission_end_unstarted(next, BH_OUT_OF_HOST_MEMORY,
                                     "the host process is out of memory", 0);
    }
    bhi_stream_unref_locked(stream);
}

void bhi_stream_cancel(struct bhi_submission *submission) {
    submission->cancelled = true;
    if (submission->state == BHI_QUEUED) {
        bhi_submission_end_unstarted(submission, BH_CANCELLED, BHI_CANCELLED_UNSTARTED, 0);
        return;
    }
    if (bhi_worker_withdraw(submission->worker, submission))
        return;
    /* It runs, or is about to. The worker is killed only when its turn has come, so that nobody
     * before it is hurt; those behind it start again elsewhere (E13). */
    bhi_submission_notify(submission);
    bhi_reactor_arm(submission->stream->context, 0);
}

void bhi_stream_served(struct bh_stream *stream) {
    stream->state = BHI_STREAM_SERVED;
    stream->failed_starts = 0;
    stream->trouble = (bh_detail){0};
    bhi_stream_changed(stream);
    bhi_stream_wants_release(stream);
}

void bhi_stream_unavailable(struct bh_stream *stream, const bh_detail *why) {
    stream->state = BHI_STREAM_UNAVAILABLE;
    stream->trouble = *why;
    bhi_stream_changed(stream);
    bhi_stream_drain(stream, why->status, why->message);
}

void bhi_stream_lost_worker(struct bh_stream *stream, bool blame, const bh_detail *why) {
    bool started = stream->state == BHI_STREAM_SERVED;
    stream->state = BHI_STREAM_WANTING;
    stream->worker = NULL;
    stream->context->wake_reactor = true;
    bhi_stream_changed(stream);
    uint64_t now_ns = bhi_now_ns();
    stream->restart_at_ns = 0;
    if (blame)
        return;
    if (why)
        stream->trouble = *why;
    if (over_budget(stream, now_ns)) {
        bh_detail spent;
        bhi_fail(&spent, BH_UNAVAILABLE, 0,
                 "stream %s: more than %u workers died within %llu s without running anything; the "
                 "last: %s",
                 stream->name, stream->context->settings.restart_budget,
                 (unsigned long long)(stream->context->settings.restart_window_ns / 1000000000),
                 why ? why->message : "killed while idle");
        bhi_stream_unavailable(stream, &spent);
        return;
    }
    if (!started) {
        uint64_t backoff_ns = FIRST_BACKOFF_NS;
        for (uint32_t i = 0; i < stream->failed_starts && backoff_ns < LAST_BACKOFF_NS; i++)
            backoff_ns *= 2;
        stream->failed_starts++;
        stream->restart_at_ns =
            now_ns + (backoff_ns < LAST_BACKOFF_NS ? backoff_ns : LAST_BACKOFF_NS);
    }
}
