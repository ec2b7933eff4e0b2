#include "supervisor/compile/compiler.h"
#include "base/detail.h"
#include "base/text.h"
#include "supervisor/event/event.h"
#include "supervisor/stream/stream.h"

#define MEMORY (1ull << 30)

/* Fails with the reason that the event's verdict gives. */
static bh_status say_end(const struct bh_event *event,
                         const struct bhi_internal_submission *internal, const char *subject,
                         bh_detail *detail) {
    const bh_verdict *verdict = &event->verdict;
    char limit[BHI_TEXT_TIME];
    switch (verdict->status) {
    case BH_DEADLINE:
        return bhi_fail(detail, BH_COMPILE_FAILED, 0,
                        "%s: %.200s: the compile deadline of %s passed before the compiler ended",
                        internal->call, subject, bhi_text_time(internal->deadline_ns, limit));
    case BH_OUT_OF_HOST_MEMORY:
        return bhi_fail(detail, BH_COMPILE_FAILED, 0,
                        "%s: %.200s: the compiler ran out of its memory of %llu MiB",
                        internal->call, subject, MEMORY >> 20);
    case BH_WORKER_SIGNAL:
        return bhi_fail(detail, BH_COMPILE_FAILED, 0, "%s: %.200s: the compiler crashed (%s)",
                        internal->call, subject, bhi_signal_name(verdict->signal));
    case BH_COMPILE_FAILED:
    case BH_WORKER_EXIT:
    case BH_SECCOMP:
        return bhi_fail(detail, BH_COMPILE_FAILED, 0, "%s: %.200s: %.250s", internal->call, subject,
                        verdict->message);
    default:
        return bhi_fail(detail, verdict->status, 0, "%s: %.200s: %.250s", internal->call, subject,
                        verdict->message);
    }
}

/* Also fills in the cause, if the compiler died. If it has reported COMPILE_FAILED itself, it did
 * not die. */
static bh_status report_end(const struct bh_event *event,
                            const struct bhi_internal_submission *internal, const char *subject,
                            bh_detail *detail) {
    const bh_verdict *verdict = &event->verdict;
    const bh_status status = say_end(event, internal, subject, detail);
    if (detail && status == BH_COMPILE_FAILED && verdict->status != BH_COMPILE_FAILED) {
        detail->cause = verdict->status;
        detail->signal = verdict->signal;
    }
    return status;
}

bh_status bhi_compiler_ask(bh_context *context, const struct bhi_internal_submission *internal,
                           const char *subject, bh_detail *detail) {
    bh_stream_options options;
    bh_stream_options_init(&options);
    options.name = "compiler";
    options.memory_limit = MEMORY;
    struct bh_stream *stream;
    bh_status status =
        bhi_stream_make(context, &options, BHI_WORKER_COMPILER, &stream, internal->call, detail);
    if (status != BH_OK) {
        return status;
    }
    struct bh_event *event;
    status = bhi_internal_submit(stream, internal, &event, detail);
    if (status == BH_OK) {
        /* This wait is bounded, because the worker's start and the submission have deadlines. */
        status = bhi_event_await(event, BH_FOREVER);
        if (status == BH_OK && event->verdict.status != BH_OK) {
            status = report_end(event, internal, subject, detail);
        }
        bhi_event_unref(event);
    }
    bhi_stream_unref(stream); /* also ends its worker */
    return status;
}
