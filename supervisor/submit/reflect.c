/* bh_kernel_reflect: a stream's worker compiles the kernel and reports its bindings. */
#include "base/detail.h"
#include "base/futex.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/event/event.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/stream/stream.h"
#include "supervisor/submit/submit.h"
#include "supervisor/worker/outbox.h"

#include <errno.h>
#include <stdlib.h>

/* The worker reports the bindings before it completes the prepare, but over another channel. This
 * is how long to wait for the report after the completion. */
#define REFLECTION_GRACE_NS (2ull * 1000000000)

enum said {
    SAID,
    NOT_YET,
    LOST,    /* there was no memory to keep what it said */
    UNKNOWN, /* it was not given the kernel */
};

/* What the stream's present worker has said of the kernel. If that was lost, the worker is made to
 * forget the kernel, so that it reports again. */
static enum said look(bh_stream *stream, const bh_kernel *kernel, bh_kernel_info *out_info) {
    const uint64_t id = kernel->body->id;
    enum said said = UNKNOWN;
    bhi_context_lock(stream->context);
    struct bhi_worker *worker = bhi_stream_worker(stream);
    const struct bhi_reflection *found = worker ? bhi_worker_reflection(worker, id) : NULL;
    if (found) {
        *out_info = found->info;
        said = SAID;
    } else if (worker && worker->reflection_lost) {
        bhi_worker_forget_kernel(worker, id);
        said = LOST;
    } else if (worker && bhi_worker_kernels_has(&worker->kernels, id)) {
        said = NOT_YET;
    }
    bhi_context_pump_unlock(stream->context);
    return said;
}

/* One try. BH_PENDING: the worker that compiled the kernel died before it reported. */
static bh_status reflect_once(bh_kernel *kernel, bh_stream *stream, uint64_t deadline_ns,
                              bh_kernel_info *out_info, bh_detail *detail) {
    bh_event *event = NULL;
    BHI_TRY(bhi_submit_prepare("bh_kernel_reflect", kernel, stream, &event, detail));
    if (bhi_event_await(event, deadline_ns) != BH_OK) {
        bh_event_release(event);
        return BHI_FAIL(detail, "bh_kernel_reflect", BH_REASON_LATE, "the kernel",
                        .subject = BH_SUBJECT_KERNEL);
    }
    bh_status status = event->verdict.status;
    if (status != BH_OK) {
        BHI_FAIL(detail, "", event->verdict.reason, .status = status,
                 .said = event->verdict.message);
    }
    bh_event_release(event);
    uint64_t grace_ns = bhi_deadline_ns(REFLECTION_GRACE_NS);
    if (grace_ns < deadline_ns) {
        deadline_ns = grace_ns;
    }
    while (status == BH_OK) {
        uint32_t seen = atomic_load(&stream->ready_word);
        const enum said said = look(stream, kernel, out_info);
        if (said == SAID) {
            break;
        }
        if (said == LOST) {
            return BHI_FAIL(detail, "bh_kernel_reflect", BH_REASON_MEMORY);
        }
        if (said == UNKNOWN) {
            return BH_PENDING;
        }
        if (bhi_futex_wait(&stream->ready_word, seen, false, deadline_ns) == -ETIMEDOUT) {
            return BHI_FAIL(detail, "bh_kernel_reflect", BH_REASON_UNREACHABLE, "the worker",
                            .status = BH_TIMEOUT, .text = "did not say what the kernel binds");
        }
    }
    return status;
}

/* For BH_ACCESS_DECLARED. The first reflection counts: a later worker could answer falsely. */
static bh_status remember(struct bh_kernel *kernel, const bh_kernel_info *info, bh_detail *detail) {
    bh_kernel_info *declared = malloc(sizeof *declared);
    if (!declared) {
        return BHI_FAIL(detail, "bh_kernel_reflect", BH_REASON_MEMORY);
    }
    *declared = *info;
    bhi_context_lock(kernel->context);
    if (!kernel->declared) {
        kernel->declared = declared;
        declared = NULL;
    }
    bhi_context_unlock(kernel->context);
    free(declared);
    return BH_OK;
}

static bh_status reflect(bh_kernel *kernel, bh_stream *stream, uint64_t timeout_ns,
                         bh_kernel_info *out_info, bh_detail *detail) {
    uint64_t deadline_ns = bhi_deadline_ns(timeout_ns);
    bh_status status;
    do {
        status = reflect_once(kernel, stream, deadline_ns, out_info, detail);
    } while (status == BH_PENDING);
    return status == BH_OK ? remember(kernel, out_info, detail) : status;
}

BH_API bh_status bh_kernel_reflect(bh_kernel *kernel, bh_stream *stream, uint64_t timeout_ns,
                                   bh_kernel_info *out_info, bh_detail *detail) {
    static const char call[] = "bh_kernel_reflect";
    BHI_NEED(out_info, call, detail);
    if (bhi_callback_check(call, detail) != BH_OK) {
        return BH_IN_CALLBACK;
    }
    BHI_TRY(bhi_layout_check(BHI_OURS(bh_kernel_info), out_info, call, "out_info", detail));
    bh_kernel_info *ours = calloc(1, sizeof *ours);
    if (!ours) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    bh_status status = reflect(kernel, stream, timeout_ns, ours, detail);
    if (status == BH_OK) {
        bhi_layout_give(out_info, ours, sizeof *ours);
    }
    free(ours);
    return status;
}
