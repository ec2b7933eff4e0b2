#include "supervisor/stream/stream.h"
#include "base/detail.h"
#include "base/futex.h"
#include "base/selector.h"
#include "base/text.h"
#include "supervisor/context/context.h"
#include "supervisor/context/freelist.h"
#include "supervisor/context/layout.h"
#include "supervisor/context/room.h"
#include "supervisor/stream/tenant.h"
#include "supervisor/worker/selector.h"
#include "supervisor/worker/worker_proc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_DEADLINE_NS (10ull * 1000000000)
#define DEFAULT_COMPILE_NS  (60ull * 1000000000)
#define DEFAULT_GRACE_NS    (250ull * 1000000)
#define DEFAULT_MEMORY      (4ull << 30)
#define MIN_MEMORY          (64ull << 20) /* the same limit as in tool/values.c */
#define MOST_PROCESSORS     1024u         /* the same limit as in ipc/messages.def */
#define MOST_NICE           19u           /* likewise */
/* What a CUDA context counts as (decision 111): as much as one took on an H200, 259 MiB, and 62 more
 * once a kernel with printf is loaded, in the driver's steps of 2 MiB. */
#define CUDA_CONTEXT (322ull << 20)

void bhi_stream_changed(struct bh_stream *stream) {
    atomic_fetch_add(&stream->ready_word, 1);
    bhi_futex_wake(&stream->ready_word, false, INT_MAX);
}

struct bhi_worker *bhi_stream_worker(const struct bh_stream *stream) {
    return stream->core.worker ? bhi_worker_of(stream->core.worker) : NULL;
}

static struct bhi_freelist freelist = BHI_FREELIST_INIT(struct bh_stream);

static uint64_t context_bytes_of(const char *selector) {
    return selector && bhi_selector_is_cuda(selector) ? CUDA_CONTEXT : 0;
}

/* Checks that there is room for the worker that the stream will want, and for the zygote that forks
 * it. */
static bh_status check_room(bh_context *context, enum bhi_worker_kind kind, const char *call,
                            bh_detail *detail) {
    bool spare = false;
    bhi_context_lock(context);
    const bool first = bhi_list_empty(&context->zygotes);
    BHI_LIST_FOR(const struct bhi_worker, worker, &context->workers, link) {
        spare = spare || (worker->kind == kind && !worker->core.stream);
    }
    bhi_context_unlock(context);
    if (spare) {
        return BH_OK; /* most likely the stream gets this worker */
    }
    return bhi_room_check(call, first ? "the first worker" : "another worker",
                          first ? BHI_ROOM_ZYGOTE + BHI_ROOM_WORKER : BHI_ROOM_WORKER, detail);
}

bh_status bhi_stream_make(bh_context *context, const bh_stream_options *options,
                          enum bhi_worker_kind kind, struct bh_stream **out_stream,
                          const char *call, bh_detail *detail) {
    BHI_TRY(check_room(context, kind, call, detail));
    struct bh_stream *stream = bhi_freelist_take(&freelist);
    if (!stream) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    *stream = (struct bh_stream){0};
    atomic_init(&stream->refs, 1);
    stream->context = context;
    bhi_context_retain(context);
    stream->kind = kind;
    bhi_list_init(&stream->loader);
    stream->deadline_ns = options->deadline_ns;
    stream->memory_limit = options->memory_limit;
    stream->processor = options->processor;
    stream->nice = (uint32_t)options->nice;
    stream->device_memory_limit = options->device_memory;
    stream->context_bytes = context_bytes_of(options->device);
    stream->anywhere = options->device && strcmp(options->device, BHI_ANY_DEVICE) == 0;
    stream->placed = !stream->anywhere;
    snprintf(stream->device, sizeof stream->device, "%s",
             options->device && stream->placed ? options->device : "");
    snprintf(stream->tenant, sizeof stream->tenant, "%s", options->tenant ? options->tenant : "");
    bhi_context_lock(context);
    if (kind == BHI_WORKER_DEVICE) {
        stream->owner = bhi_tenant_join(context, stream->tenant, &stream->of_owner);
    }
    if (kind == BHI_WORKER_DEVICE && !stream->owner) {
        bhi_context_unlock(context);
        bhi_freelist_give(&freelist, stream);
        bhi_context_unref(context);
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    bhi_stream_init(&stream->core, &context->core, context->settings.restart_budget,
                    context->settings.restart_window_ns);
    stream->core.strict = options->strict;
    stream->core.apart = options->isolation == BH_ISOLATION_SUBMISSION ? BHI_APART_ALL
                         : options->isolation == BH_ISOLATION_KERNEL   ? BHI_APART_CODE
                                                                       : BHI_APART_NOT;
    stream->core.compile_deadline_ns =
        kind == BHI_WORKER_DEVICE ? options->compile_deadline_ns : BH_FOREVER;
    stream->core.grace_ns = options->grace_ns;
    stream->number = kind == BHI_WORKER_DEVICE ? ++context->stream_serial : 0;
    if (options->name) {
        bhi_text_line(stream->core.name, sizeof stream->core.name, options->name,
                      strlen(options->name));
    } else {
        snprintf(stream->core.name, sizeof stream->core.name, "stream-%u", context->stream_serial);
    }
    bhi_list_append(&context->streams, &stream->link);
    context->spares_due = context->wake_reactor = true; /* the reactor finds or starts a worker */
    bhi_context_pump_unlock(context);
    *out_stream = stream;
    return BH_OK;
}

BH_API bh_status bh_stream_create(bh_context *context, const bh_stream_options *given,
                                  bh_stream **out_stream, bh_detail *detail) {
    BHI_NEED(out_stream, "bh_stream_create", detail);
    *out_stream = NULL;
    BHI_TRY(bhi_context_check(context, "bh_stream_create", detail));
    bh_stream_options all;
    const bh_stream_options *options = &all;
    BHI_TRY(bhi_layout_take(BHI_OURS(bh_stream_options), &all, given, "bh_stream_create", "options",
                            detail));
    if (options->device && strlen(options->device) >= sizeof((struct bh_stream *)0)->device) {
        return BHI_FAIL(detail, "bh_stream_create", BH_REASON_TOO_LONG, "options.device",
                        .limit = 47);
    }
    if (options->tenant && strlen(options->tenant) >= BHI_TENANT) {
        return BHI_FAIL(detail, "bh_stream_create", BH_REASON_TOO_LONG, "options.tenant",
                        .limit = BHI_TENANT - 1);
    }
    char driver[BHI_DRIVER_NAME];
    uint32_t device_index;
    if (options->device && !bhi_selector_parse(options->device, driver, &device_index)) {
        return BHI_FAIL(detail, "bh_stream_create", BH_REASON_NO_SELECTOR, options->device);
    }
    all.deadline_ns = all.deadline_ns ? all.deadline_ns : DEFAULT_DEADLINE_NS;
    all.compile_deadline_ns =
        all.compile_deadline_ns ? all.compile_deadline_ns : DEFAULT_COMPILE_NS;
    all.grace_ns = bhi_given(all.grace_ns, DEFAULT_GRACE_NS);
    all.memory_limit = bhi_given(all.memory_limit, DEFAULT_MEMORY);
    all.device_memory = bhi_given(all.device_memory, 0);
    if (options->memory_limit && options->memory_limit < MIN_MEMORY) {
        return BHI_FAIL(detail, "bh_stream_create", BH_REASON_ARGUMENT, "options.memory_limit",
                        .value = options->memory_limit, .limit = 64u << 20,
                        .text = "is less than 64 MiB: no driver starts with that");
    }
    if (options->device_memory && options->device_memory < context_bytes_of(options->device)) {
        return BHI_FAIL(detail, "bh_stream_create", BH_REASON_ARGUMENT, "options.device_memory",
                        .value = options->device_memory, .limit = context_bytes_of(options->device),
                        .text = BHI_SAY("is %llu bytes, less than the %llu bytes that the CUDA "
                                        "context of the stream's worker counts as",
                                        (unsigned long long)options->device_memory,
                                        (unsigned long long)context_bytes_of(options->device)));
    }
    if (options->processor > MOST_PROCESSORS) {
        return BHI_FAIL(detail, "bh_stream_create", BH_REASON_OVER, "options.processor",
                        .value = options->processor, .limit = MOST_PROCESSORS);
    }
    if (options->nice > MOST_NICE) {
        return BHI_FAIL(detail, "bh_stream_create", BH_REASON_OVER, "options.nice",
                        .value = options->nice, .limit = MOST_NICE);
    }
    if ((uint32_t)options->isolation > BH_ISOLATION_SUBMISSION) {
        return BHI_FAIL(detail, "bh_stream_create", BH_REASON_UNKNOWN_VALUE, "options.isolation",
                        .value = (uint64_t)options->isolation, .text = "bh_isolation");
    }
    bh_status status = bhi_stream_make(context, options, BHI_WORKER_DEVICE, out_stream,
                                       "bh_stream_create", detail);
    if (status == BH_OK) {
        atomic_init(&(*out_stream)->handle.count, 1);
    }
    return status;
}

bool bhi_stream_rests(const struct bh_stream *stream) {
    return stream->context->settings.worker_idle_ns && stream->kind == BHI_WORKER_DEVICE &&
           stream->core.state == BHI_STREAM_WANTING && !stream->core.worker && !stream->awaited &&
           bhi_list_empty(&stream->core.queue);
}

/* Waits for a worker. The caller has counted itself in |awaited|, so that the stream does not
 * rest. */
static bh_status wait_ready(bh_stream *stream, uint64_t deadline_ns, const char *call,
                            bh_detail *detail) {
    bh_context *context = stream->context;
    for (;;) {
        uint32_t seen = atomic_load(&stream->ready_word);
        bhi_context_lock(context);
        bool closed = context->closed;
        if (!closed) {
            bhi_stream_heal(&stream->core);
        }
        enum bhi_stream_state state = stream->core.state;
        bh_detail trouble = stream->core.trouble;
        bhi_context_pump_unlock(context);
        if (closed) {
            return BHI_FAIL(detail, call, BH_REASON_DESTROYED);
        }
        if (state == BHI_STREAM_SERVED) {
            return BH_OK;
        }
        if (state == BHI_STREAM_UNAVAILABLE) {
            if (detail) {
                *detail = trouble;
            }
            return trouble.status;
        }
        if (deadline_ns > bhi_now_ns() && bhi_callback_check(call, detail) != BH_OK) {
            return BH_IN_CALLBACK;
        }
        if (bhi_futex_wait(&stream->ready_word, seen, false, deadline_ns) == -ETIMEDOUT) {
            return BHI_FAIL(detail, call, BH_REASON_NO_WORKER, .after = &trouble);
        }
    }
}

static bh_status await_ready(bh_stream *stream, uint64_t deadline_ns, const char *call,
                             bh_detail *detail) {
    bh_context *context = stream->context;
    bhi_context_lock(context);
    context->wake_reactor |= bhi_stream_rests(stream);
    stream->awaited++;
    bhi_context_pump_unlock(context);
    bh_status status = wait_ready(stream, deadline_ns, call, detail);
    bhi_context_lock(context);
    stream->awaited--;
    bhi_context_unlock(context);
    return status;
}

BH_API bh_status bh_stream_wait_ready(bh_stream *stream, uint64_t timeout_ns, bh_detail *detail) {
    BHI_NEED_LIVE(stream, "bh_stream_wait_ready", detail);
    bh_context *context = stream->context;
    BHI_TRY(bhi_context_check_fork(context, "bh_stream_wait_ready", detail));
    return await_ready(stream, bhi_deadline_ns(timeout_ns), "bh_stream_wait_ready", detail);
}

bh_status bhi_stream_await_device(struct bh_stream *stream, const char *call, bh_detail *detail) {
    bh_context *context = stream->context;
    const uint64_t patience_ns = 2 * context->settings.start_timeout_ns;
    const uint64_t deadline_ns = bhi_deadline_ns(patience_ns);
    for (;;) {
        bhi_context_lock(context);
        const bool known = stream->runs_on.known;
        bhi_context_unlock(context);
        if (known) {
            return BH_OK;
        }
        BHI_TRY(await_ready(stream, deadline_ns, call, detail));
        if (bhi_now_ns() > deadline_ns) {
            return BHI_FAIL(detail, call, BH_REASON_UNREACHABLE, stream->core.name,
                            .subject = BH_SUBJECT_STREAM, .status = BH_TIMEOUT,
                            .text = "loses its workers as soon as they are ready");
        }
    }
}

BH_API bh_status bh_stream_cancel(bh_stream *stream) {
    if (!BHI_LIVE(stream)) {
        return BH_INVALID_ARGUMENT;
    }
    bh_context *context = stream->context;
    if (bhi_context_forked(context)) {
        return BH_FORKED;
    }
    bhi_context_lock(context);
    bhi_stream_cancel(&stream->core);
    bhi_context_pump_unlock(context);
    return BH_OK;
}

BH_API int32_t bh_stream_worker_pid(bh_stream *stream) {
    if (!BHI_LIVE(stream) || bhi_context_forked(stream->context)) {
        return 0;
    }
    bhi_context_lock(stream->context);
    int32_t pid = stream->core.state == BHI_STREAM_SERVED ? stream->core.worker->pid : 0;
    bhi_context_unlock(stream->context);
    return pid;
}

BH_API void bh_stream_retain(bh_stream *stream) {
    if (stream) {
        (void)bhi_handle_retain(&stream->handle);
    }
}

/* Reports |failure|, the event of a stream that is gone, in bh_context_synchronize. Takes the
 * reference. NULL is allowed. */
static void inherit(bh_context *context, struct bh_event *failure) {
    if (!failure) {
        return;
    }
    struct bh_event *dropped = failure;
    /* An event holds its context, so a closed context must not hold an event. */
    if (!context->closed &&
        (!context->inherited_failure || failure->id < context->inherited_failure->id)) {
        dropped = context->inherited_failure;
        context->inherited_failure = failure;
    }
    bhi_event_unref(dropped);
}

void bhi_stream_unref_locked(struct bh_stream *stream) {
    if (atomic_fetch_sub_explicit(&stream->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    /* Every submission that has not ended holds a reference, so all have ended. */
    bh_context *context = stream->context;
    struct bhi_worker *worker = bhi_stream_worker(stream);
    inherit(context, stream->core.failure);
    stream->core.failure = NULL;
    bhi_stream_fini(&stream->core);
    if (worker) {
        bhi_core_worker_kill(&worker->core, BHI_KILL_RETIRED, 0, "its stream was released");
        bhi_worker_release(worker);
    }
    bhi_list_remove(&stream->link);
    if (stream->owner) {
        bhi_tenant_leave(context, stream->owner, &stream->of_owner, &stream->core.stats);
    } else if (stream->kind == BHI_WORKER_LOADER) {
        bhi_stats_add(&context->counts.loaders, &stream->core.stats);
    }
    context->spares_due = true;
    free(stream->seen_devices);
    bhi_freelist_give(&freelist, stream);
    bhi_context_unref(context); /* never the last reference: the lock's holder has one */
}

void bhi_stream_unref(struct bh_stream *stream) {
    if (!stream) {
        return;
    }
    bh_context *context = stream->context;
    bhi_context_retain(context);
    bhi_context_lock(context);
    bhi_stream_unref_locked(stream);
    bhi_context_pump_unlock(context);
    bhi_context_unref(context);
}

BH_API void bh_stream_release(bh_stream *stream) {
    if (stream && bhi_context_drop(&stream->handle, stream->context)) {
        bh_context *context = stream->context;
        bhi_context_lock(context);
        context->drop_replicas(context, NULL, stream); /* a replica would keep the stream */
        bhi_context_pump_unlock(context);
        bhi_stream_unref(stream);
    }
}

void bhi_streams_hold(bh_context *context) {
    BHI_LIST_EACH(node, &context->streams)
    bhi_stream_ref(BHI_CONTAINER(node, struct bh_stream, link));
}

void bhi_streams_let_go(bh_context *context) {
    BHI_LIST_EACH_SAFE(node, &context->streams)
    bhi_stream_unref_locked(BHI_CONTAINER(node, struct bh_stream, link));
}
