/* bh_trace_driver: reports which system calls a driver makes. */
#include "base/detail.h"
#include "base/futex.h"
#include "supervisor/context/context.h"
#include "supervisor/context/layout.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/selector.h"
#include "supervisor/worker/zygote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define START_NS (30ull * 1000000000)
#define LOOK_NS  (20ull * 1000000)

/* Lock held. Returns the zygote that serves |driver|, with a reference. */
static struct bhi_zygote *find_zygote(bh_context *context, const char *driver) {
    BHI_LIST_FOR(struct bhi_zygote, zygote, &context->zygotes, link) {
        if (zygote->state == BHI_ZYGOTE_READY &&
            (strcmp(zygote->requested, driver) == 0 || strcmp(zygote->driver, driver) == 0)) {
            bhi_zygote_retain(zygote);
            return zygote;
        }
    }
    return NULL;
}

/* Creates a stream, so that the reactor starts a zygote for its driver. Returns BH_OK once the
 * zygote is ready, even if no worker can be started. */
static bh_status start_zygote(bh_context *context, const char *device, const char *driver,
                              struct bhi_zygote **out_zygote, bh_detail *detail) {
    bh_stream_options options = {.struct_size = sizeof options};
    options.device = device;
    options.name = "trace";
    bh_stream *stream;
    bh_status status;
    BHI_TRY(bh_stream_create(context, &options, &stream, detail));
    const uint64_t end_ns = bhi_deadline_ns(START_NS);
    do { /* waits in short steps: the zygote counts, and a worker may never be ready */
        status = bh_stream_wait_ready(stream, LOOK_NS, detail);
        bhi_context_lock(context);
        *out_zygote = find_zygote(context, driver);
        bhi_context_unlock(context);
    } while (!*out_zygote && status == BH_TIMEOUT && bhi_now_ns() < end_ns);
    bh_stream_release(stream);
    return *out_zygote ? BH_OK : status == BH_OK ? BH_UNAVAILABLE : status;
}

static bh_status await(struct bhi_zygote *zygote, uint32_t index, bh_detail *detail) {
    bh_context *context = zygote->context;
    bhi_context_lock(context);
    bool begun =
        zygote->state == BHI_ZYGOTE_READY && bhi_trace_begin(&zygote->trace, zygote->socket, index);
    const uint64_t deadline_ns = zygote->trace.deadline_ns;
    bhi_context_unlock(context);
    if (!begun) {
        return BHI_FAIL(detail, "bh_trace_driver", BH_REASON_UNREACHABLE,
                        "the driver's process (zygote)", .text = "could not be sent the request");
    }
    for (;;) {
        uint32_t seen = atomic_load(&zygote->probe_word);
        bhi_context_lock(context);
        enum bhi_trace_state state = zygote->trace.state;
        bool ready = zygote->state == BHI_ZYGOTE_READY;
        char text[256];
        snprintf(text, sizeof text, "%s", zygote->trace.text);
        bhi_context_unlock(context);
        if (state == BHI_TRACE_DONE) {
            return BH_OK;
        }
        if (state == BHI_TRACE_FAILED) {
            return BHI_FAIL(detail, "bh_trace_driver", BH_REASON_TRACE, .text = text);
        }
        if (!ready) {
            return BHI_FAIL(detail, "bh_trace_driver", BH_REASON_DIED,
                            "the driver's process (zygote)");
        }
        if (bhi_futex_wait(&zygote->probe_word, seen, false, deadline_ns) == -ETIMEDOUT) {
            return BHI_FAIL(detail, "bh_trace_driver", BH_REASON_LATE,
                            "the driver's process (zygote)");
        }
    }
}

BH_API bh_status bh_trace_driver(bh_context *context, const char *device, bh_trace *out_trace,
                                 bh_traced_call *out_calls, size_t capacity, size_t *out_count,
                                 bh_detail *detail) {
    size_t size;
    BHI_NEED(out_count, "bh_trace_driver", detail);
    BHI_TRY(
        bhi_layout_check(BHI_OURS(bh_trace), out_trace, "bh_trace_driver", "out_trace", detail));
    BHI_TRY(bhi_layout_stride(BHI_OURS(bh_traced_call), out_calls, capacity, "bh_trace_driver",
                              "out_calls", &size, detail));
    bh_trace trace = {.struct_size = sizeof trace};
    bhi_layout_give(out_trace, &trace, sizeof trace);
    *out_count = 0;
    BHI_TRY(bhi_context_check(context, "bh_trace_driver", detail));
    BHI_TRY(bhi_callback_check("bh_trace_driver", detail));
    char driver[BHI_DRIVER_NAME];
    uint32_t index = 0;
    if (!bhi_selector_parse(device ? device : "", driver, &index)) {
        return BHI_FAIL(detail, "bh_trace_driver", BH_REASON_NO_SELECTOR, device);
    }
    struct bhi_zygote *zygote = NULL;
    bh_status status = start_zygote(context, device, driver, &zygote, detail);
    if (status == BH_OK) {
        status = await(zygote, index, detail);
    }
    if (status == BH_OK) {
        bhi_context_lock(context);
        const struct bhi_trace_page *page = zygote->trace.page;
        if (zygote->trace.state == BHI_TRACE_DONE) {
            bhi_trace_read(page, &trace);
            bhi_trace_unknown(page, trace.first_unknown, sizeof trace.first_unknown);
            bhi_layout_give(out_trace, &trace, sizeof trace);
            for (uint32_t i = 0; i < bhi_trace_call_count(page); i++) {
                bh_traced_call call = {.struct_size = sizeof call};
                if (!bhi_trace_call_read(page, i, &call)) {
                    continue;
                }
                if (*out_count < capacity) {
                    bhi_layout_put(out_calls, *out_count, size, &call, sizeof call);
                }
                ++*out_count;
            }
        } else {
            status = BHI_FAIL(detail, "bh_trace_driver", BH_REASON_TRACE,
                              .text = "another trace has begun", .advice = "try again");
        }
        bhi_context_unlock(context);
    }
    bhi_zygote_release(zygote);
    return status;
}
