#include "supervisor/compile/compiler.h"
#include "base/detail.h"
#include "base/text.h"
#include "supervisor/event/event.h"
#include "supervisor/stream/stream.h"

static bh_status say_end(const bh_verdict *verdict, const struct bhi_compiler_request *request,
                         bh_detail *detail) {
    const char *call = request->internal.call, *subject = request->subject;
    char limit[BHI_TEXT_TIME];
    switch (verdict->status) {
    case BH_DEADLINE:
        return bhi_fail_for(
            detail, BH_COMPILE_FAILED, BH_REASON_COMPILE_DEADLINE,
            "%s: %.200s: the compile deadline of %s passed before the compiler ended", call,
            subject, bhi_text_time(request->internal.deadline_ns, limit));
    case BH_OUT_OF_HOST_MEMORY:
        return bhi_fail_for(detail, BH_COMPILE_FAILED, verdict->reason,
                            "%s: %.200s: the compiler ran out of its memory of %llu MiB", call,
                            subject, (unsigned long long)request->memory >> 20);
    case BH_WORKER_SIGNAL:
        if (verdict->blame == BH_BLAME_NONE) {
            return bhi_fail(detail, BH_WORKER_SIGNAL, 0,
                            "%s: %.200s: the compiler was killed from outside (%s): call again",
                            call, subject, bhi_signal_name(verdict->signal));
        }
        return bhi_fail(detail, BH_COMPILE_FAILED, 0, "%s: %.200s: the compiler crashed (%s)", call,
                        subject, bhi_signal_name(verdict->signal));
    case BH_COMPILE_FAILED:
    case BH_WORKER_EXIT:
    case BH_SECCOMP:
        return bhi_fail_for(detail, BH_COMPILE_FAILED, verdict->reason, "%s: %.200s: %.250s", call,
                            subject, verdict->message);
    default:
        return bhi_fail_for(detail, verdict->status, verdict->reason, "%s: %.200s: %.250s", call,
                            subject, verdict->message);
    }
}

bh_status bhi_compiler_report(const struct bh_event *event,
                              const struct bhi_compiler_request *request, bh_detail *detail) {
    const bh_verdict *verdict = &event->verdict;
    const bh_status status = say_end(verdict, request, detail);
    /* If it has reported COMPILE_FAILED itself, it did not die. */
    if (detail && status == BH_COMPILE_FAILED && verdict->status != BH_COMPILE_FAILED) {
        detail->cause = verdict->status;
    }
    if (detail && (detail->cause || status == BH_WORKER_SIGNAL)) {
        detail->signal = verdict->signal;
    }
    return status;
}

bh_status bhi_compiler_start(bh_context *context, const struct bhi_compiler_request *request,
                             struct bh_event **out_event, bh_detail *detail) {
    bh_stream_options options;
    bh_stream_options_init(&options);
    options.name = "compiler";
    options.tenant = request->tenant;
    options.memory_limit = request->memory;
    struct bh_stream *stream;
    bh_status status = bhi_stream_make(context, &options, BHI_WORKER_COMPILER, &stream,
                                       request->internal.call, detail);
    if (status == BH_OK) {
        status = bhi_internal_submit(stream, &request->internal, out_event, detail);
        bhi_stream_unref(stream); /* it, and its worker, end with the submission */
    }
    return status;
}

bh_status bhi_compiler_ask(bh_context *context, const struct bhi_compiler_request *request,
                           bh_detail *detail) {
    struct bh_event *event;
    bh_status status = bhi_compiler_start(context, request, &event, detail);
    if (status != BH_OK) {
        return status;
    }
    /* This wait is bounded, because the worker's start and the submission have deadlines. */
    status = bhi_event_await(event, BH_FOREVER);
    if (status == BH_OK && event->verdict.status != BH_OK) {
        status = bhi_compiler_report(event, request, detail);
    }
    bhi_event_unref(event);
    return status;
}
