#include "cli/run/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/sort.h"
#include "request/overlap.h"
#include "request/run.h"
#include "tool/clock.h"
#include "tool/complain.h"
#include "tool/device_list.h"
#include "tool/exit_status.h"
#include "tool/gpu_nodes.h"
#include "tool/interrupt.h"
#include "tool/quantity.h"
#include "tool/session.h"
#include "tool/text.h"
#include "tool/wait.h"

int bhi_run_refused(const struct bhi_run *run, bh_status status,
                    const struct bhi_complaint *complaint) {
    if (bhi_interrupt_signal()) {
        return bhi_interrupt_exit_status();
    }
    bhi_complain(run->request.command, "%s", complaint->text);
    bhi_ending_blame(status);
    return BHI_EXIT_USAGE;
}

int bhi_run_out_of_memory(const struct bhi_run *run) {
    return bhi_complain_memory(run->request.command);
}

/* -- the stream ------------------------------------------------------------------------------ */

static bh_status make_stream(struct bhi_run *run, const char *device, bh_detail *detail) {
    bh_stream_options options = {.struct_size = sizeof options};
    options.name = run->request.command;
    options.device = device;
    if (run->request.deadline_ns) {
        options.deadline_ns = run->request.deadline_ns;
    }
    if (run->request.compile_deadline_ns) {
        options.compile_deadline_ns = run->request.compile_deadline_ns;
    }
    if (run->request.limits_grace) {
        options.grace_ns = run->request.grace_ns ? run->request.grace_ns : BH_OFF;
    }
    options.tenant = run->request.tenant;
    if (run->request.limits_memory) {
        options.memory_limit = run->request.memory_limit ? run->request.memory_limit : BH_OFF;
    }
    return bh_stream_create(run->context, &options, &run->stream, detail);
}

/* Returns the argument to blame if the stream cannot be made; |otherwise|, unless it is the memory
 * limit. */
static const char *refused_option(const struct bhi_run *run, bh_status status,
                                  const char *otherwise) {
    return status == BH_INVALID_ARGUMENT && run->request.limits_memory ? "--memory-limit"
                                                                       : otherwise;
}

/* The text is no selector: looks for devices whose name contains it. */
static int resolve_device(struct bhi_run *run, bh_detail *detail) {
    const bh_device_info *device;
    struct bhi_device_list list;

    bh_stream_release(run->stream);
    run->stream = NULL;
    bh_status status = bhi_device_list_fetch(run->context, &list, detail);
    if (status == BH_OK) {
        status = bhi_device_list_find(&list, run->request.device, &device, detail);
        status = status == BH_OK ? make_stream(run, device->selector, detail) : status;
        bhi_device_list_free(&list);
    }
    return status == BH_OK
               ? BHI_EXIT_READY
               : bhi_session_fail(run->request.command, refused_option(run, status, "--device"),
                                  status, detail);
}

static bool no_such_selector(bh_status status) {
    return status == BH_NO_DEVICE || status == BH_INVALID_ARGUMENT;
}

int bhi_run_start_worker(struct bhi_run *run) {
    bh_detail detail = {0};
    bh_status status = make_stream(run, run->request.device, &detail);
    if (status == BH_OK) {
        return BHI_EXIT_READY;
    }
    if (run->request.device && no_such_selector(status)) {
        return resolve_device(run, &detail);
    }
    return bhi_session_fail(run->request.command, refused_option(run, status, NULL), status,
                            &detail);
}

int bhi_run_await_worker(struct bhi_run *run) {
    bh_detail detail = {0};
    bh_status status = bhi_wait_ready(run->stream, &detail);
    if (run->request.device && no_such_selector(status)) {
        int exit_status = resolve_device(run, &detail);
        if (exit_status != BHI_EXIT_READY) {
            return exit_status;
        }
        status = bhi_wait_ready(run->stream, &detail);
    }
    if (bhi_interrupt_signal()) {
        return bhi_interrupt_exit_status();
    }
    return status == BH_OK ? BHI_EXIT_READY
                           : bhi_session_fail(run->request.command, NULL, status, &detail);
}

int bhi_run_choose_memory(struct bhi_run *run) {
    struct bhi_run_request *request = &run->request;
    bh_detail detail = {0};
    bh_buffer *probe = NULL;
    /* Nothing to wait for: into host memory, files are read while the worker starts. */
    request->memory = bhi_memory_here(request->memory);
    if (request->memory == BH_MEMORY_HOST) {
        return BHI_EXIT_READY;
    }
    const int exit_status = bhi_run_await_worker(run);
    if (exit_status != BHI_EXIT_READY) {
        return exit_status;
    }
    bh_buffer_options options = {.struct_size = sizeof options};
    options.stream = run->stream;
    options.memory = request->memory;
    const bh_status status = bh_buffer_create(run->context, 0, &options, &probe, &detail);
    if (status != BH_OK) {
        return bhi_session_fail(request->command, "--memory", status, &detail);
    }
    if (bh_buffer_memory(probe) == BH_MEMORY_HOST) {
        request->memory = BH_MEMORY_HOST;
    }
    bh_buffer_release(probe);
    return BHI_EXIT_READY;
}

/* -- the kernel ------------------------------------------------------------------------------ */

/* A verdict may name no kernel; here it can be only this one. */
static void name_kernel(struct bhi_run *run) {
    bh_verdict *verdict = &run->outcome.verdict;
    bhi_format(verdict->kernel_name, sizeof verdict->kernel_name, "%s", run->request.kernel_name);
    bh_kernel_hash(run->kernel, verdict->kernel_hash);
}

/* Prints the cause, and returns the exit status for it. */
static int conclude(struct bhi_run *run) {
    bh_verdict *verdict = &run->outcome.verdict;
    int exit_status = bhi_verdict_exit(verdict);
    if (exit_status == BHI_EXIT_POISONED) {
        bhi_verdict_print(run->request.command, verdict, run->request.trusted);
    } else {
        bh_detail detail = {.status = verdict->status, .reason = verdict->reason};
        bhi_format(detail.message, sizeof detail.message, "%.480s", verdict->message);
        /* The device's limit on workgroups concerns --groups and not the file. */
        const bool groups = verdict->reason == BH_REASON_WORKGROUPS;
        bhi_session_fail(run->request.command, groups ? "--groups" : run->request.kernel_path,
                         verdict->status, &detail);
    }
    return bhi_interrupt_or(exit_status);
}

/* The result of the compile is in run->outcome.verdict. */
int bhi_run_compile(struct bhi_run *run) {
    bh_event *event = NULL;
    bh_detail detail = {0};
    bh_status status = bh_kernel_prepare(run->kernel, run->stream, &event, &detail);
    if (status != BH_OK) {
        return bhi_session_fail(run->request.command, run->request.kernel_path, status, &detail);
    }
    status = bhi_wait_event(event, &run->outcome.verdict, NULL, NULL);
    bh_event_release(event);
    if (status != BH_OK || bhi_interrupt_signal()) { /* possible only after a signal */
        return bhi_interrupt_exit_status();
    }
    name_kernel(run);
    return run->outcome.verdict.status == BH_OK ? BHI_EXIT_READY : conclude(run);
}

/* -- the submissions ------------------------------------------------------------------------- */

/* The times of all rounds, sorted. */
struct times {
    uint64_t *host, *device; /* a part of the memory of |host| */
    bool device_known;
};

static void measure(struct bhi_run *run, struct times *times, uint64_t n) {
    struct bhi_run_outcome *outcome = &run->outcome;
    if (n == 0) {
        return;
    }
    if (run->request.time) {
        uint64_t *device = times->device;
        outcome->device =
            times->device_known ? bhi_spread_of(device, n) : (struct bhi_spread){.known = false};
        memcpy(device, times->host, n * sizeof *device);
        outcome->host = bhi_spread_of(device, n);
    }
    bhi_sort_u64(times->host, n);
    outcome->min_ns = times->host[0];
    outcome->median_ns =
        n % 2 ? times->host[n / 2] : (times->host[n / 2 - 1] + times->host[n / 2]) / 2;
}

static int submit_one(struct bhi_run *run, const bh_submit_info *info, uint64_t *out_ns) {
    bh_event *event = NULL;
    bh_detail detail = {0};
    uint64_t begin = bhi_clock_ns();

    bh_status status = bh_submit(run->stream, info, &event, &detail);
    if (status != BH_OK) {
        return bhi_session_fail(run->request.command, run->request.kernel_path, status, &detail);
    }
    run->outcome.submissions++;
    status = bhi_wait_event(event, &run->outcome.verdict, NULL, NULL);
    *out_ns += bhi_clock_ns() - begin;
    bh_event_release(event);
    if (status != BH_OK) { /* a signal came, and it does not end */
        return bhi_interrupt_exit_status();
    }
    name_kernel(run);
    if (run->outcome.verdict.status != BH_OK) {
        return conclude(run);
    }
    run->outcome.ready++;
    return bhi_interrupt_or(BHI_EXIT_READY);
}

int bhi_run_submit_apart(struct bhi_run *run, const bh_submit_info *info) {
    const struct bhi_run_outcome before = run->outcome;
    uint64_t unused = 0;
    const int exit_status = submit_one(run, info, &unused);
    if (exit_status == BHI_EXIT_READY) {
        run->outcome = before;
    }
    return exit_status;
}

/* Submits all commands once, one after the other. */
static int submit_round(struct bhi_run *run, const bh_command *commands, uint32_t count,
                        struct times *times, uint64_t round) {
    int exit_status = BHI_EXIT_READY;
    for (uint32_t i = 0; i < count && exit_status == BHI_EXIT_READY; i++) {
        const bh_submit_info info = {.struct_size = sizeof info,
                                     .commands = &commands[i],
                                     .command_count = 1,
                                     .deadline_ns = run->request.deadline_ns,
                                     .flags = run->request.time ? BH_SUBMIT_TIMED : 0};
        exit_status = submit_one(run, &info, &times->host[round]);
        times->device[round] += run->outcome.verdict.device_ns;
        times->device_known &= run->outcome.verdict.device_ns > 0;
    }
    return exit_status;
}

int bhi_run_submit_all(struct bhi_run *run) {
    const struct bhi_run_request *request = &run->request;
    bh_binding bindings[BHI_MAX_BINDINGS];
    int exit_status = BHI_EXIT_READY;
    uint64_t rounds = 0;

    const bh_command command = bhi_run_request_command(request, run->kernel, bindings);
    uint64_t *memory = calloc(request->repeat, 2 * sizeof *memory);
    if (!memory) {
        return bhi_run_out_of_memory(run);
    }
    struct times times = {.host = memory, .device = memory + request->repeat, .device_known = true};
    run->outcome.timed = request->time;
    while (rounds < request->repeat && exit_status == BHI_EXIT_READY) {
        exit_status = submit_round(run, run->commands ? run->commands : &command,
                                   run->commands ? run->command_count : 1, &times, rounds);
        rounds += exit_status == BHI_EXIT_READY;
    }
    measure(run, &times, rounds);
    free(memory);
    return exit_status;
}

/* -- the whole ------------------------------------------------------------------------------- */

int bhi_run_check_overlap(struct bhi_run *run) {
    struct bhi_complaint why, complaint;
    const struct bhi_run_binding *output = bhi_run_find_overlap(&run->request, "--", &why);
    if (!output) {
        return BHI_EXIT_READY;
    }
    bhi_refuse(&complaint, "--%s %.300s: %.600s", output->option, output->text, why.text);
    return bhi_run_refused(run, BH_INVALID_ARGUMENT, &complaint);
}

int bhi_run_await_all(struct bhi_run *run) {
    int exit_status = bhi_run_await_inputs(&run->request, &run->outcome.verdict);
    return exit_status == BHI_EXIT_POISONED ? conclude(run) : exit_status;
}

int bhi_run_open_context(struct bhi_run *run) {
    int exit_status = BHI_EXIT_READY;
    run->context = bhi_session_open(run->request.command, run->request.verbose,
                                    run->request.cache_dir, &exit_status);
    return exit_status;
}

static void print_success(const struct bhi_run *run) {
    const struct bhi_run_outcome *outcome = &run->outcome;
    FILE *stream = stdout;
    if (run->request.json || (run->request.repeat == 1 && !run->request.time)) {
        return; /* nothing to report */
    }
    for (uint32_t i = 0; i < run->request.binding_count; i++) {
        if (run->request.bindings[i].out.is_stdout) {
            stream = stderr; /* standard output has data */
        }
    }
    if (run->request.time) {
        bhi_verdict_print_times(stream, outcome);
        return;
    }
    char count[BHI_QUANTITY], least[BHI_QUANTITY], median[BHI_QUANTITY];
    fprintf(stream, "%s submissions: minimum %s, median %s\n",
            bhi_quantity_count(count, outcome->submissions),
            bhi_quantity_time(least, outcome->min_ns),
            bhi_quantity_time(median, outcome->median_ns));
}

static void print_json(const struct bhi_run *run, int exit_status) {
    uint8_t hash[32];
    const struct bhi_end end = {
        .exit_status = exit_status,
        .kernel = run->request.kernel_name,
        .kernel_hash = run->kernel ? hash : NULL,
        .ending = &run->ending,
    };
    if (run->kernel) {
        bh_kernel_hash(run->kernel, hash);
    }
    bhi_verdict_print_json(&run->outcome, &end);
}

void bhi_run_begin(struct bhi_run *run) {
    bhi_ending_watch(&run->ending);
}

int bhi_run_misused(struct bhi_run *run, const struct bhi_complaint *complaint) {
    bhi_complain(run->request.command, "%s; see bulkhead %s --help", complaint->text,
                 run->request.command);
    return bhi_run_end(run, BHI_EXIT_USAGE);
}

int bhi_run_end(struct bhi_run *run, int exit_status) {
    if (exit_status == BHI_EXIT_READY) {
        print_success(run);
    } else {
        bhi_complain_cancelled(run->request.command, exit_status, "");
    }
    if (run->request.json) {
        print_json(run, exit_status);
    }
    bhi_ending_fini(&run->ending);
    bh_kernel_release(run->kernel);
    bh_stream_release(run->stream);
    bh_context_destroy(run->context);
    bhi_run_end_loads(&run->request);
    bhi_run_request_free(&run->request);
    free(run->code);
    free(run);
    return exit_status;
}
