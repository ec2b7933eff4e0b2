#include "cli/run/steps.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "request/content.h"
#include "tool/clock.h"
#include "tool/exit_status.h"
#include "tool/gpu_nodes.h"
#include "tool/interrupt.h"
#include "tool/quantity.h"
#include "tool/session.h"
#include "tool/task.h"
#include "tool/text.h"
#include "tool/verdict.h"
#include "tool/wait.h"
#include <bulkhead/file.h>

enum { BAR = 40 };

static const uint64_t patience_ns = 1000000000; /* before a progress bar is shown */

/* -- making them ----------------------------------------------------------------------------- */

/* Returns the message without the call, the path and the tensor, which the argument shows. */
static const char *without_prefix(const char *message, const char *path, const char *tensor) {
    const size_t length = strlen(path);
    message = bhi_text_without_call(message);
    if (strncmp(message, path, length) != 0) {
        return message;
    }
    const char *rest = message + length;
    char named[300];
    bhi_format(named, sizeof named, ", tensor '%.250s'", tensor ? tensor : "");
    if (tensor && !strncmp(rest, named, strlen(named))) {
        rest += strlen(named);
    }
    return strncmp(rest, ": ", 2) ? message : rest + 2;
}

/* Does the path look like FILE:TENSOR, though it was not parsed as that? */
static bool looks_like_tensor(const struct bhi_run_binding *binding) {
    const char *safetensors = strstr(binding->text, ".safetensors:");
    const char *colon = strrchr(binding->in_path, ':');
    return safetensors || (colon && colon[1] && !strchr(colon, '/'));
}

/* A loader is a worker: where none starts, the file is not to blame. */
static bool is_about_workers(const bh_detail *why) {
    return why->status == BH_NO_DEVICE || why->status == BH_UNAVAILABLE ||
           why->status == BH_UNSUPPORTED || why->reason == BH_REASON_NO_WORKER;
}

/* Complains, and returns the exit status. */
static int complain(const struct bhi_run_request *request, const struct bhi_run_binding *binding,
                    const bh_detail *why) {
    char what[400];
    const char *message = why->message[0] ? why->message : bh_status_text(why->status);
    bh_detail detail = {.status = why->status, .reason = why->reason};
    if (is_about_workers(why)) {
        bhi_format(detail.message, sizeof detail.message, "%.480s",
                   without_prefix(message, binding->in_path, binding->tensor));
        return bhi_session_fail(request->command, NULL, why->status, &detail);
    }
    const char *hint =
        why->reason == BH_REASON_NOT_REGULAR ? " (use - for a stream)"
        : !binding->tensor && looks_like_tensor(binding)
            ? " (to bind a tensor use --in with a file name that ends in .safetensors or .npz)"
            : "";
    bhi_format(detail.message, sizeof detail.message, "%.420s%s",
               without_prefix(message, binding->in_path, binding->tensor), hint);
    bhi_format(what, sizeof what, "--%s %.300s", binding->option, binding->text);
    return bhi_session_fail(request->command, what, why->status, &detail);
}

/* Calls bh_buffer_create, which waits for the file's header, on a thread of its own, so that a
 * signal need not wait with it. */
struct bhi_load_opening {
    pthread_t thread;
    bh_context *context;
    bh_file_source source;
    bh_buffer_options options;
    bh_buffer *buffer;
    bh_status status;
    bh_detail detail;
};

static void *open_file(void *argument) {
    struct bhi_load_opening *opening = argument;
    opening->status = bh_buffer_create(opening->context, 0, &opening->options, &opening->buffer,
                                       &opening->detail);
    return NULL;
}

static struct bhi_load_opening *start_opening(const struct bhi_run_request *request,
                                              const struct bhi_run_binding *binding,
                                              bh_context *context, bh_stream *stream) {
    struct bhi_load_opening *opening = calloc(1, sizeof *opening);
    if (!opening) {
        return NULL;
    }
    opening->context = context;
    opening->source = (bh_file_source){.struct_size = sizeof(bh_file_source)};
    opening->source.path = binding->in_path;
    opening->source.tensor = binding->tensor;
    opening->source.format = bhi_binding_format(binding->in_path, binding->tensor);
    opening->source.deadline_ns = BH_FOREVER; /* only a signal ends the wait */
    opening->options = (bh_buffer_options){
        .struct_size = sizeof opening->options,
        .file = &opening->source,
        .stream = stream, /* its tenant is also the file's */
        .memory = bhi_memory_for_file(request->memory, binding->in_path),
    };
    if (pthread_create(&opening->thread, NULL, open_file, opening) == 0) {
        return opening;
    }
    free(opening);
    return NULL;
}

void bhi_run_end_loads(struct bhi_run_request *request) {
    struct bhi_load_opening *opening = request->opening;
    if (!opening) {
        return;
    }
    (void)pthread_join(opening->thread, NULL);
    bh_buffer_release(opening->buffer);
    free(opening);
    request->opening = NULL;
}

static int load(struct bhi_run_request *request, struct bhi_run_binding *binding,
                bh_context *context, bh_stream *stream) {
    struct bhi_complaint complaint;
    struct bhi_load_opening *opening = start_opening(request, binding, context, stream);
    if (!opening) {
        return complain(request, binding, &(bh_detail){.status = BH_NO_MEMORY});
    }
    if (!bhi_task_await(opening->thread)) {
        request->opening = opening;
        return bhi_interrupt_exit_status();
    }
    binding->buffer = opening->buffer;
    const bh_status status = opening->status;
    bh_detail detail = opening->detail;
    detail.status = status;
    free(opening);
    if (status != BH_OK) {
        return complain(request, binding, &detail);
    }
    if (!bhi_run_take_array(binding, &complaint)) {
        detail.status = BH_LOAD_FAILED;
        bhi_format(detail.message, sizeof detail.message, "%s", complaint.text);
        return complain(request, binding, &detail);
    }
    return BHI_EXIT_READY;
}

int bhi_run_load_all(struct bhi_run *run) {
    struct bhi_run_request *request = &run->request;
    int exit_status = BHI_EXIT_READY;
    for (uint32_t i = 0; i < request->binding_count && exit_status == BHI_EXIT_READY; i++) {
        struct bhi_run_binding *binding = &request->bindings[i];
        if (binding->in_path && !bhi_run_is_stdin(binding)) {
            exit_status = load(request, binding, run->context, run->stream);
        }
        exit_status = bhi_interrupt_or(exit_status);
    }
    return exit_status;
}

/* -- waiting for them ------------------------------------------------------------------------ */

struct bar {
    bool wanted; /* standard error is a terminal */
    bool shown;
    uint64_t began_ns;
    const struct bhi_run_request *request;
};

static void draw(void *user) {
    struct bar *bar = user;
    const struct bhi_run_request *request = bar->request;
    uint64_t done = 0, total = 0;
    if (!bar->wanted || bhi_clock_ns() - bar->began_ns < patience_ns) {
        return;
    }
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *binding = &request->bindings[i];
        uint64_t one_done = 0, one_total = 0;
        if (binding->buffer &&
            bh_buffer_load_progress(binding->buffer, &one_done, &one_total, NULL) == BH_OK) {
            done += one_done;
            total += one_total;
        }
    }
    if (!total) {
        return;
    }
    int filled = (int)((double)done / (double)total * BAR);
    char loaded[BHI_QUANTITY], all[BHI_QUANTITY];
    fprintf(stderr, "\rloading [%.*s%*s] %3d %%  %10s of %s ", filled,
            "========================================", BAR - filled, "",
            (int)((double)done / (double)total * 100), bhi_quantity_bytes(loaded, done),
            bhi_quantity_bytes(all, total));
    bar->shown = true;
}

static void erase(struct bar *bar) {
    if (bar->shown) {
        fprintf(stderr, "\r%*s\r", BAR + 50, "");
    }
    bar->shown = false;
}

static int await(struct bhi_run_binding *binding, const struct bhi_run_request *request,
                 struct bar *bar, bh_verdict *out_verdict) {
    bh_event *event = NULL;
    if (bh_buffer_load_event(binding->buffer, &event, NULL) != BH_OK) {
        return BHI_EXIT_READY; /* it is not from a file */
    }
    const bh_status status = bhi_wait_event(event, out_verdict, draw, bar);
    bh_event_release(event);
    if (status == BH_OK && out_verdict->status == BH_OK && !bhi_interrupt_signal()) {
        return BHI_EXIT_READY;
    }
    erase(bar);
    if (bhi_interrupt_signal()) {
        return bhi_interrupt_exit_status();
    }
    if (bhi_verdict_exit_status(out_verdict->status) == BHI_EXIT_POISONED) {
        return BHI_EXIT_POISONED;
    }
    bh_detail detail = {.status = out_verdict->status, .reason = out_verdict->reason};
    memcpy(detail.message, out_verdict->message, sizeof detail.message);
    return complain(request, binding, &detail);
}

int bhi_run_await_inputs(struct bhi_run_request *request, bh_verdict *out_verdict) {
    struct bar bar = {
        .wanted = isatty(STDERR_FILENO) == 1, .began_ns = bhi_clock_ns(), .request = request};
    int exit_status = BHI_EXIT_READY;
    for (uint32_t i = 0; i < request->binding_count && exit_status == BHI_EXIT_READY; i++) {
        if (request->bindings[i].buffer) {
            exit_status = await(&request->bindings[i], request, &bar, out_verdict);
        }
    }
    erase(&bar);
    return exit_status;
}
