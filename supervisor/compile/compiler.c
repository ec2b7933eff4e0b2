#include "supervisor/compile/compiler.h"
#include "base/detail.h"
#include "supervisor/event/event.h"
#include "supervisor/stream/stream.h"

static bh_status say_end(const bh_verdict *verdict, const struct bhi_compiler_request *request,
                         bh_detail *detail) {
    struct bhi_why why = {.name = request->subject,
                          .subject = BH_SUBJECT_KERNEL,
                          .place = request->subject,
                          .reason = verdict->reason,
                          .status = BH_COMPILE_FAILED,
                          .text = bhi_signal_name(verdict->signal)};
    if (verdict->status == BH_DEADLINE && verdict->reason == BH_REASON_COMPILER_LATE) {
        why.said = verdict->message;
    } else if (verdict->status == BH_DEADLINE) {
        why.reason = BH_REASON_COMPILE_DEADLINE;
        why.limit = request->internal.deadline_ns;
    } else if (verdict->status == BH_OUT_OF_HOST_MEMORY) {
        why.limit = request->memory;
        why.said = why.reason == BH_REASON_MEMORY_LIMIT || why.reason == BH_REASON_ADDRESS_SPACE
                       ? NULL
                       : verdict->message; /* its own words */
    } else if (verdict->status == BH_WORKER_SIGNAL && verdict->blame == BH_BLAME_NONE) {
        why.reason = BH_REASON_COMPILER_KILLED;
        why.status = BH_WORKER_SIGNAL;
    } else if (verdict->status == BH_WORKER_SIGNAL) {
        why.reason = BH_REASON_COMPILER_CRASHED;
    } else {
        why.said = verdict->message;
        why.status = verdict->status == BH_WORKER_EXIT || verdict->status == BH_SECCOMP
                         ? BH_COMPILE_FAILED
                         : verdict->status;
    }
    return bhi_fail_why(detail, request->internal.call, &why);
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
    bh_stream_options options = {.struct_size = sizeof options};
    options.name = "compiler";
    options.tenant = request->tenant;
    options.device = request->driver;
    options.memory_limit = request->memory;
    struct bh_stream *stream;
    bh_status status = bhi_stream_make(context, &options, BHI_WORKER_COMPILER, &stream,
                                       request->internal.call, detail);
    if (status == BH_OK) {
        struct bhi_internal_submission internal = request->internal;
        internal.wait_counts = true; /* a driver that does not load ends it, too */
        status = bhi_internal_submit(stream, &internal, out_event, detail);
        bhi_stream_unref(stream); /* it, and its worker, end with the submission */
    }
    return status;
}

bh_status bhi_compiler_ask(bh_context *context, const struct bhi_compiler_request *request,
                           bh_detail *detail) {
    struct bh_event *event;
    BHI_TRY(bhi_compiler_start(context, request, &event, detail));
    /* This wait is bounded, because the worker's start and the submission have deadlines. */
    bh_status status = bhi_event_await(event, BH_FOREVER);
    if (status == BH_OK && event->verdict.status != BH_OK) {
        status = bhi_compiler_report(event, request, detail);
    }
    bhi_event_unref(event);
    return status;
}
