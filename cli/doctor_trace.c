/* bulkhead doctor --trace-driver */
#include <bulkhead/bulkhead.h>
#include <bulkhead/trace.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/mains.h"
#include "tool/args.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/json.h"
#include "tool/session.h"
#include "tool/task.h"
#include "tool/text.h"

enum { CAPACITY = 1500 };

static const char command[] = "doctor";

static const char *judgement_name(const bh_traced_call *call) {
    switch (call->judgement) {
    case BH_CALL_ALLOWED:
        return "allowed";
    case BH_CALL_ANSWERED:
        return "answered";
    case BH_CALL_UNKNOWN:
        break;
    }
    return "unknown";
}

static const char *filter_name(const bh_traced_call *call) {
    static const char *const behind_b[] = {"running", "memory", "words"};
    for (size_t i = 0; i < sizeof behind_b / sizeof *behind_b; i++) {
        if (strcmp(call->phase, behind_b[i]) == 0) {
            return "B";
        }
    }
    return "A";
}

static void print_json(const bh_trace *trace, const bh_traced_call *calls, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        const bh_traced_call *call = &calls[i];
        json_array_append_new(
            array, json_pack("{s:s, s:s, s:o, s:o, s:I, s:s, s:o}", "phase", call->phase, "filter",
                             filter_name(call), "call", bhi_json_text(call->call), "arguments",
                             bhi_json_text(call->arguments), "count", (json_int_t)call->count,
                             "table", judgement_name(call), "errno", bhi_json_known(call->error)));
    }
    bhi_json_print(json_pack("{s:o, s:o, s:o, s:b, s:b, s:b, s:I, s:I, s:o, s:o, s:o}", "driver",
                             bhi_json_text(trace->driver), "version", bhi_json_text(trace->version),
                             "made_for", bhi_json_text(trace->made_for), "known_version",
                             (int)trace->known, "tried", (int)trace->tried, "complete",
                             (int)trace->complete, "unknown", (json_int_t)trace->unknown, "dropped",
                             (json_int_t)trace->dropped, "failure", bhi_json_text(trace->failure),
                             "left_out", bhi_json_text(trace->left_out), "calls", array));
}

static void print_head(const bh_trace *trace) {
    char driver[64], version[200], made_for[200];
    printf("driver %s, version %s\n", bhi_text_clean(driver, sizeof driver, trace->driver),
           trace->version[0] ? bhi_text_clean(version, sizeof version, trace->version) : "unknown");
    printf("table made for %s%s%s\n", bhi_text_clean(made_for, sizeof made_for, trace->made_for),
           trace->known ? "" : ": this version is not among them",
           trace->tried ? "" : "; not tried: written from documentation");
}

static void print_calls(const bh_traced_call *calls, size_t count) {
    const char *phase = "";
    for (size_t i = 0; i < count; i++) {
        const bh_traced_call *call = &calls[i];
        char name[64], arguments[256], answer[64] = "";
        if (strcmp(phase, call->phase) != 0) {
            phase = call->phase;
            printf("\n%s (behind filter %s)\n", phase, filter_name(call));
        }
        if (call->judgement == BH_CALL_ANSWERED) {
            const char *error = strerrorname_np(call->error);
            snprintf(answer, sizeof answer, "answered %s", error ? error : "an errno");
        }
        printf("  %-8s %7" PRIu64 "  %-18s %s%s%s%s\n",
               call->judgement == BH_CALL_UNKNOWN ? "UNKNOWN" : "", call->count,
               bhi_text_clean(name, sizeof name, call->call),
               bhi_text_clean(arguments, sizeof arguments, call->arguments), answer[0] ? " (" : "",
               answer, answer[0] ? ")" : "");
    }
}

static int report(const struct bhi_args *args, const bh_trace *trace, const bh_traced_call *calls,
                  size_t count) {
    if (bhi_args_has(args, BHI_DOCTOR_JSON)) {
        print_json(trace, calls, count);
    } else {
        char clean[300];
        print_head(trace);
        print_calls(calls, count);
        printf("\n%zu kinds of calls; %" PRIu32 " calls that the table does not know", count,
               trace->unknown);
        if (trace->dropped) {
            printf("; %" PRIu32 " calls are not listed: there are too many kinds", trace->dropped);
        }
        printf("\n");
        if (trace->left_out[0]) {
            printf("not traced: %s\n", bhi_text_clean(clean, sizeof clean, trace->left_out));
        }
        if (trace->failure[0]) {
            printf("the trace ended early: %s\n",
                   bhi_text_clean(clean, sizeof clean, trace->failure));
        }
        if (trace->unknown) {
            printf("report the output of this command, with the distribution's name\n");
        }
    }
    return trace->unknown || !trace->complete ? BHI_EXIT_ENVIRON : BHI_EXIT_READY;
}

struct tracing {
    bh_context *context;
    const char *device;
    bh_trace trace;
    bh_traced_call *calls;
    size_t count;
    bh_status status;
    bh_detail detail;
};

static void run(void *argument) {
    struct tracing *t = argument;
    t->trace.struct_size = sizeof t->trace;
    t->calls->struct_size = sizeof *t->calls;
    t->status = bh_trace_driver(t->context, t->device, &t->trace, t->calls, CAPACITY, &t->count,
                                &t->detail);
}

int bhi_doctor_trace(const struct bhi_args *args) {
    int exit_status = BHI_EXIT_ENVIRON;
    struct tracing t = {.device = bhi_args_value(args, BHI_DOCTOR_DEVICE),
                        .calls = calloc(CAPACITY, sizeof *t.calls)};
    if (!t.calls) {
        return bhi_complain_memory(command);
    }
    bh_context *context = t.context =
        bhi_session_open(command, bhi_args_has(args, BHI_DOCTOR_VERBOSE), NULL, &exit_status);
    const bool traced = context && bhi_task_run(command, &context, run, &t, &exit_status);
    bh_context_destroy(context);
    if (traced) {
        exit_status = t.status == BH_OK ? report(args, &t.trace, t.calls, t.count)
                                        : bhi_session_fail(command, NULL, t.status, &t.detail);
    }
    free(t.calls);
    return exit_status;
}
