#include "supervisor/worker/trace.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/futex.h"
#include "base/memfd.h"
#include "base/text.h"
#include "ipc/fdpass.h"
#include "ipc/trace.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const phases[BHI_TRACE_PHASES] = {
    [BHI_TRACE_DEVICE] = "device",     [BHI_TRACE_WARM_UP] = "warm-up",
    [BHI_TRACE_RUNNING] = "running",   [BHI_TRACE_MEMORY] = "memory",
    [BHI_TRACE_SENTINEL] = "sentinel", [BHI_TRACE_WORDS] = "words",
};

bool bhi_trace_begin(struct bhi_zygote_trace *trace, int socket, uint32_t device_index) {
    if (trace->state == BHI_TRACE_PENDING) {
        return true;
    }
    if (!trace->page) {
        BHI_AUTO_FD fd = bhi_memfd_create("bulkhead-trace", sizeof *trace->page, 0);
        void *page =
            fd < 0 ? MAP_FAILED
                   : mmap(NULL, sizeof *trace->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED) {
            return false;
        }
        trace->page = page;
        trace->fd = bhi_fd_steal(&fd);
    }
    memset(trace->page, 0, sizeof *trace->page);
    struct bhi_message message = {
        .type = BHI_MSG_TRACE,
        .trace = {.device_index = device_index, .bytes = bhi_page_round(sizeof *trace->page)}};
    /* A seqpacket socket transfers whole packets, so several threads may write. */
    if (bhi_fdpass_send_message(socket, &message, &trace->fd, 1) != 0) {
        return false;
    }
    trace->state = BHI_TRACE_PENDING;
    trace->deadline_ns = bhi_deadline_ns(BHI_TRACE_NS);
    return true;
}

void bhi_trace_fini(struct bhi_zygote_trace *trace) {
    if (trace->page) {
        munmap(trace->page, sizeof *trace->page);
        close(trace->fd);
    }
    trace->page = NULL;
}

/* Copies a text of the shared page once. */
static void take_text(char *out, size_t size, const char *text, size_t length) {
    bhi_text_sanitise(out, size, text, strnlen(text, length));
}

bool bhi_trace_call_read(const struct bhi_trace_page *page, uint32_t index, bh_traced_call *out) {
    const struct bhi_trace_call call = page->calls[index];
    if (call.phase >= BHI_TRACE_PHASES) {
        return false;
    }
    memset(out, 0, sizeof *out);
    bhi_format(out->phase, sizeof out->phase, "%s", phases[call.phase]);
    take_text(out->call, sizeof out->call, call.name, sizeof call.name);
    take_text(out->arguments, sizeof out->arguments, call.arguments, sizeof call.arguments);
    out->count = call.count;
    out->judgement = call.judgement == BHI_TRACE_ALLOWED    ? BH_CALL_ALLOWED
                     : call.judgement == BHI_TRACE_ANSWERED ? BH_CALL_ANSWERED
                                                            : BH_CALL_UNKNOWN;
    out->error = call.judgement == BHI_TRACE_ANSWERED ? call.error : 0;
    return true;
}

void bhi_trace_read(const struct bhi_trace_page *page, bh_trace *out) {
    memset(out, 0, sizeof *out);
    take_text(out->driver, sizeof out->driver, page->driver, sizeof page->driver);
    take_text(out->version, sizeof out->version, page->version, sizeof page->version);
    take_text(out->made_for, sizeof out->made_for, page->made_for, sizeof page->made_for);
    take_text(out->failure, sizeof out->failure, page->failure, sizeof page->failure);
    take_text(out->left_out, sizeof out->left_out, page->left_out, sizeof page->left_out);
    out->known = page->known == 1;
    out->tried = page->tried == 1;
    out->complete = page->complete == 1;
    out->unknown = page->unknown;
    out->dropped = page->dropped;
}

uint32_t bhi_trace_call_count(const struct bhi_trace_page *page) {
    const uint32_t count = page->count;
    return count < BHI_TRACE_CALLS ? count : BHI_TRACE_CALLS;
}

void bhi_trace_unknown(const struct bhi_trace_page *page, char *out, size_t size) {
    out[0] = 0;
    for (uint32_t i = 0; i < bhi_trace_call_count(page); i++) {
        bh_traced_call call = {.struct_size = sizeof call};
        if (bhi_trace_call_read(page, i, &call) && call.judgement == BH_CALL_UNKNOWN) {
            bhi_format(out, size, "%s%s%s in phase %s", call.call, call.arguments[0] ? " " : "",
                       call.arguments, call.phase);
            return;
        }
    }
}

void bhi_trace_end(struct bhi_zygote_trace *trace, bool done, const char *text) {
    if (trace->state != BHI_TRACE_PENDING) {
        return;
    }
    trace->state = done ? BHI_TRACE_DONE : BHI_TRACE_FAILED;
    bhi_format(trace->text, sizeof trace->text, "%s", text);
    trace->line[0] = 0;
    if (done) {
        bh_trace seen = {.struct_size = sizeof seen};
        char call[256];
        bhi_trace_read(trace->page, &seen);
        bhi_trace_unknown(trace->page, call, sizeof call);
        if (call[0]) {
            bhi_format(trace->line, sizeof trace->line,
                       "driver %s (%.80s) makes a system call that its table does not list: %.160s "
                       "(table made for %.60s)",
                       seen.driver, seen.version[0] ? seen.version : "version unknown", call,
                       seen.made_for);
        }
    }
}
