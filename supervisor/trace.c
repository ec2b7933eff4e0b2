#include "supervisor/trace.h"
#include "base/detail.h"
#include "base/futex.h"
#include "base/memfd.h"
#include "base/text.h"
#include "ipc/fdpass.h"
#include "ipc/trace.h"
#include "supervisor/context/layout.h"
#include "supervisor/stream.h"
#include "supervisor/worker/selector.h"
#include "supervisor/worker/worker_proc.h"
#include "supervisor/worker/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_NS (30ull * 1000000000)
#define LOOK_NS  (20ull * 1000000)
#define TRACE_NS (70ull * 1000000000) /* longer than the zygote gives the tracer */
#define HOLD_NS  (30ull * 1000000000) /* an obituary, of these */

static const char *const phases[BHI_TRACE_PHASES] = {
    [BHI_TRACE_DEVICE] = "device",
    [BHI_TRACE_WARM_UP] = "warm-up",
    [BHI_TRACE_RUNNING] = "running",
};

bool bhi_trace_begin(struct bhi_zygote *zygote, uint32_t device_index) {
    struct bhi_zygote_trace *trace = &zygote->trace;
    if (trace->state == BHI_TRACE_PENDING)
        return true;
    if (zygote->state != BHI_ZYGOTE_READY)
        return false;
    if (!trace->page) {
        int fd = bhi_memfd_create("bulkhead-trace", sizeof *trace->page, 0);
        void *page =
            fd < 0 ? MAP_FAILED
                   : mmap(NULL, sizeof *trace->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED) {
            if (fd >= 0)
                close(fd);
            return false;
        }
        trace->page = page;
        trace->fd = fd;
    }
    memset(trace->page, 0, sizeof *trace->page);
    struct bhi_message message = {
        .type = BHI_MSG_TRACE,
        .trace = {.device_index = device_index, .bytes = bhi_page_round(sizeof *trace->page)}};
    /* A seqpacket socket takes whole packets from several threads. */
    if (bhi_fdpass_send_message(zygote->socket, &message, &trace->fd, 1) != 0)
        return false;
    trace->state = BHI_TRACE_PENDING;
    trace->deadline_ns = bhi_deadline_ns(TRACE_NS);
    return true;
}

void bhi_trace_fini(struct bhi_zygote_trace *trace) {
    if (trace->page) {
        munmap(trace->page, sizeof *trace->page);
        close(trace->fd);
    }
    trace->page = NULL;
}

/* A text of the page's, copied once. */
static void take_text(char *out, size_t size, const char *text, size_t length) {
    bhi_text_sanitise(out, size, text, strnlen(text, length));
}

static bool take_call(const struct bhi_trace_page *page, uint32_t index, bh_traced_call *out) {
    const struct bhi_trace_call call = page->calls[index];
    if (call.phase >= BHI_TRACE_PHASES)
        return false;
    memset(out, 0, sizeof *out);
    snprintf(out->phase, sizeof out->phase, "%s", phases[call.phase]);
    take_text(out->call, sizeof out->call, call.name, sizeof call.name);
    take_text(out->arguments, sizeof out->arguments, call.arguments, sizeof call.arguments);
    out->count = call.count;
    out->judgement = call.judgement == BHI_TRACE_ALLOWED    ? BH_CALL_ALLOWED
                     : call.judgement == BHI_TRACE_ANSWERED ? BH_CALL_ANSWERED
                                                            : BH_CALL_UNKNOWN;
    out->error = call.judgement == BHI_TRACE_ANSWERED ? call.error : 0;
    return true;
}

static void take_trace(const struct bhi_trace_page *page, bh_trace *out) {
    memset(out, 0, sizeof *out);
    take_text(out->driver, sizeof out->driver, page->driver, sizeof page->driver);
    take_text(out->version, sizeof out->version, page->version, sizeof page->version);
    take_text(out->made_for, sizeof out->made_for, page->made_for, sizeof page->made_for);
    take_text(out->failure, sizeof out->failure, page->failure, sizeof page->failure);
    out->known = page->known == 1;
    out->tried = page->tried == 1;
    out->complete = page->complete == 1;
    out->unknown = page->unknown;
    out->dropped = page->dropped;
}

static uint32_t call_count(const struct bhi_trace_page *page) {
    const uint32_t count = page->count;
    return count < BHI_TRACE_CALLS ? count : BHI_TRACE_CALLS;
}

static void describe_unknown(const struct bhi_trace_page *page, char *out, size_t size) {
    out[0] = 0;
    for (uint32_t i = 0; i < call_count(page); i++) {
        bh_traced_call call;
        if (take_call(page, i, &call) && call.judgement == BH_CALL_UNKNOWN) {
            snprintf(out, size, "%s%s%s in phase %s", call.call, call.arguments[0] ? " " : "",
                     call.arguments, call.phase);
            return;
        }
    }
}

void bhi_trace_end(struct bhi_zygote *zygote, bool done, const char *text) {
    struct bhi_zygote_trace *trace = &zygote->trace;
    if (trace->state != BHI_TRACE_PENDING)
        return;
    trace->state = done ? BHI_TRACE_DONE : BHI_TRACE_FAILED;
    snprintf(trace->text, sizeof trace->text, "%s", text);
    trace->line[0] = 0;
    if (done) {
        bh_trace seen;
        char call[256];
        take_trace(trace->page, &seen);
        describe_unknown(trace->page, call, sizeof call);
        if (call[0])
            snprintf(trace->line, sizeof trace->line,
                     "driver %s (%.80s) makes a system call that its table does not know: %.160s "
                     "(table made for %.60s)",
                     seen.driver, seen.version[0] ? seen.version : "version unknown", call,
                     seen.made_for);
    }
    atomic_fetch_add(&zygote->probe_word, 1);
    bhi_futex_wake(&zygote->probe_word, false, 1 << 30);
}

bool bhi_trace_awaited(const struct bhi_worker *worker, uint64_t now_ns, uint64_t *out_until_ns) {
    const struct bhi_zygote *zygote = worker->zygote;
    const bool of_call = worker->exit_known && worker->exit_code_kind != CLD_EXITED &&
                         worker->exit_status == SIGSYS && worker->kind == BHI_WORKER_DEVICE &&
                         worker->state != BHI_RUNNING;
    *out_until_ns = zygote->trace.deadline_ns - TRACE_NS + HOLD_NS;
    return of_call && !worker->context->closed && zygote->state == BHI_ZYGOTE_READY &&
           zygote->trace.state == BHI_TRACE_PENDING && now_ns < *out_until_ns;
}

/* -- bh_trace_driver -------------------------------------------------------------------------- */

/* Lock held. The zygote that serves |driver|, with a reference. */
static struct bhi_zygote *find_zygote(bh_context *context, const char *driver) {
    BHI_LIST_EACH(node, &context->zygotes) {
        struct bhi_zygote *zygote = BHI_CONTAINER(node, struct bhi_zygote, link);
        if (zygote->state == BHI_ZYGOTE_READY &&
            (strcmp(zygote->requested, driver) == 0 || strcmp(zygote->driver, driver) == 0)) {
            bhi_zygote_retain(zygote);
            return zygote;
        }
    }
    return NULL;
}

/* A stream brings a zygote. Whether its worker can be started does not matter here. */
static bh_status start_zygote(bh_context *context, const char *device, const char *driver,
                              struct bhi_zygote **out_zygote, bh_detail *detail) {
    bh_stream_options options;
    bh_stream_options_init(&options);
    options.device = device;
    options.name = "trace";
    bh_stream *stream;
    bh_status status = bh_stream_create(context, &options, &stream, detail);
    if (status != BH_OK)
        return status;
    const uint64_t end_ns = bhi_deadline_ns(START_NS);
    do { /* as soon as there is a zygote: a worker may never be ready */
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
    bool begun = bhi_trace_begin(zygote, index);
    const uint64_t deadline_ns = zygote->trace.deadline_ns;
    bhi_context_unlock(context);
    if (!begun)
        return bhi_fail(detail, BH_UNAVAILABLE, 0, "bh_trace_driver: the zygote was not asked");
    for (;;) {
        uint32_t seen = atomic_load(&zygote->probe_word);
        bhi_context_lock(context);
        enum bhi_trace_state state = zygote->trace.state;
        bool ready = zygote->state == BHI_ZYGOTE_READY;
        char text[256];
        snprintf(text, sizeof text, "%s", zygote->trace.text);
        bhi_context_unlock(context);
        if (state == BHI_TRACE_DONE)
            return BH_OK;
        if (state == BHI_TRACE_FAILED)
            return bhi_fail(detail, BH_UNAVAILABLE, 0, "bh_trace_driver: %s", text);
        if (!ready)
            return bhi_fail(detail, BH_UNAVAILABLE, 0, "bh_trace_driver: the zygote is lost");
        if (bhi_futex_wait(&zygote->probe_word, seen, false, deadline_ns) == -ETIMEDOUT)
            return bhi_fail(detail, BH_TIMEOUT, 0, "bh_trace_driver: no answer");
    }
}

BH_API bh_status bh_trace_driver_sized(bh_context *context, const char *device, bh_trace *out_trace,
                                       size_t trace_size, bh_traced_call *out_calls,
                                       size_t capacity, size_t call_size, size_t *out_count,
                                       bh_detail *detail) {
    if (!out_trace || !out_count || (capacity && !out_calls))
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0, "bh_trace_driver: %s is NULL",
                        !out_trace   ? "out_trace"
                        : !out_count ? "out_count"
                                     : "out_calls");
    bh_status status =
        bhi_layout_check(BHI_OURS(bh_trace), trace_size, "bh_trace_driver", "out_trace", detail);
    if (status == BH_OK)
        status = bhi_layout_check(BHI_OURS(bh_traced_call), call_size, "bh_trace_driver",
                                  "out_calls", detail);
    if (status != BH_OK)
        return status;
    memset(out_trace, 0, trace_size);
    *out_count = 0;
    status = bhi_context_check(context, "bh_trace_driver", detail);
    if (status == BH_OK)
        status = bhi_callback_check("bh_trace_driver", detail);
    char driver[BHI_DRIVER_NAME];
    uint32_t index = 0;
    if (status == BH_OK && !bhi_selector_parse(device ? device : "", driver, &index))
        return bhi_fail(detail, BH_INVALID_ARGUMENT, 0,
                        "bh_trace_driver: '%s' is not a device selector", device);
    struct bhi_zygote *zygote = NULL;
    if (status == BH_OK)
        status = start_zygote(context, device, driver, &zygote, detail);
    if (status == BH_OK)
        status = await(zygote, index, detail);
    if (status == BH_OK) {
        bhi_context_lock(context);
        const struct bhi_trace_page *page = zygote->trace.page;
        if (zygote->trace.state == BHI_TRACE_DONE) {
            bh_trace trace = {0};
            take_trace(page, &trace);
            describe_unknown(page, trace.first_unknown, sizeof trace.first_unknown);
            bhi_layout_give(out_trace, trace_size, &trace, sizeof trace);
            for (uint32_t i = 0; i < call_count(page); i++) {
                bh_traced_call call;
                if (!take_call(page, i, &call))
                    continue;
                if (*out_count < capacity)
                    bhi_layout_give((uint8_t *)out_calls + *out_count * call_size, call_size, &call,
                                    sizeof call);
                ++*out_count;
            }
        } else {
            status = bhi_fail(detail, BH_UNAVAILABLE, 0,
                              "bh_trace_driver: another trace has begun; try again");
        }
        bhi_context_unlock(context);
    }
    bhi_zygote_release(zygote);
    return status;
}
