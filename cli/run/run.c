/* bulkhead run.
 *
 * The order: refuse what can be refused without a worker; start the worker, while a loader parses
 * the headers of the inputs and reads them; look up given names in what the kernel declares, and
 * compare its types with the arrays; compile the kernel, and compare what it binds with what was
 * given; when the inputs are loaded, run it.
 */
#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "cli/run/files.h"
#include "cli/run/limits.h"
#include "cli/run/match.h"
#include "cli/run/run.h"
#include "cli/run/steps.h"
#include "request/command_line.h"
#include "request/kernel_maker.h"
#include "request/launch.h"
#include "request/like.h"
#include "request/names.h"
#include "request/push.h"
#include "request/types.h"
#include "tool/args.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/session.h"
#include "tool/task.h"
#include "tool/text.h"

/* The kernel is compiled already; this is the limit for the message with its bindings. */
static const uint64_t reflect_limit_ns = 10000000000u;

static int make_kernel(struct bhi_run *run) {
    const struct bhi_run_request *request = &run->request;
    bh_kernel_options options;
    const struct bhi_kernel_file file = {.path = request->kernel_path,
                                         .code = run->code,
                                         .size = run->code_size,
                                         .language = request->language,
                                         .source = request->source,
                                         .deadline_ns = request->compile_deadline_ns};

    bhi_run_request_kernel_options(request, &options);
    return bhi_kernel_file_make(request->command, &file, &run->context, &options, &run->kernel);
}

struct inspecting {
    bh_kernel *kernel;
    uint64_t deadline_ns;
    struct bhi_kernel_types *types; /* owned */
    bh_status status;
    bh_detail detail;
};

static void inspect(void *argument) {
    struct inspecting *inspecting = argument;
    inspecting->status = bhi_kernel_types_ask(inspecting->kernel, inspecting->deadline_ns,
                                              &inspecting->types, &inspecting->detail);
}

/* Resolves names, and compares the inspected types with the arrays. */
static int match_types(struct bhi_run *run, const struct bhi_kernel_types *types) {
    struct bhi_complaint why, complaint;
    if (!bhi_run_resolve_names(&run->request, types, "--", &complaint) ||
        (!run->request.reinterpret &&
         !bhi_run_match_order(&run->request, types, "--", "--reinterpret", &complaint))) {
        return bhi_run_refused(run, BH_BINDING_MISMATCH, &complaint);
    }
    const struct bhi_run_binding *given =
        run->request.reinterpret
            ? NULL
            : bhi_run_find_mismatch(&run->request, types, "--reinterpret", &why);
    if (!given) {
        return BHI_EXIT_READY;
    }
    bhi_refuse(&complaint, "--%s %.300s: %.600s", given->option, given->text, why.text);
    return bhi_run_refused(run, BH_BINDING_MISMATCH, &complaint);
}

static int refuse_unknown_types(struct bhi_run *run, struct inspecting *inspecting) {
    bh_detail detail = inspecting->detail;
    const bool mine =
        inspecting->status == BH_LIMIT_EXCEEDED || inspecting->status == BH_COMPILE_FAILED;
    const bool named = bhi_run_has_names(&run->request);
    bhi_format(detail.message, sizeof detail.message, "%s%.380s%s%s",
               mine ? "its declared types cannot be determined: " : "",
               bhi_text_without_name(inspecting->detail.message, run->request.kernel_name),
               mine ? "; --reinterpret runs it without checking types" : "",
               mine && named ? ", and needs numbers instead of names" : "");
    return bhi_session_fail(run->request.command, run->request.kernel_path, inspecting->status,
                            &detail);
}

/* A worker without a device parses the module, while the worker with the device still starts. */
static int check_types(struct bhi_run *run) {
    int exit_status = BHI_EXIT_READY;
    if ((run->request.reinterpret ||
         (run->request.binding_count == 0 && run->request.push.size == 0)) &&
        !bhi_run_has_names(&run->request)) {
        return BHI_EXIT_READY;
    }
    struct inspecting inspecting = {.kernel = run->kernel,
                                    .deadline_ns = run->request.compile_deadline_ns};
    if (bhi_task_run(run->request.command, &run->context, inspect, &inspecting, &exit_status)) {
        if (inspecting.status == BH_OK) {
            exit_status = match_types(run, inspecting.types);
        } else if (inspecting.status != BH_INVALID_KERNEL) { /* the device's worker reports it */
            exit_status = refuse_unknown_types(run, &inspecting);
        }
    }
    free(inspecting.types);
    return exit_status;
}

static int take_likes(struct bhi_run *run) {
    struct bhi_complaint complaint;
    return bhi_run_take_likes(&run->request, "--", &complaint)
               ? BHI_EXIT_READY
               : bhi_run_refused(run, BH_INVALID_ARGUMENT, &complaint);
}

/* Compares the request with the bindings of the compiled kernel. */
static int match(struct bhi_run *run) {
    struct bhi_complaint complaint;
    bh_detail detail = {0};
    int exit_status = BHI_EXIT_READY;
    bh_kernel_info *info = calloc(1, sizeof *info);
    if (!info) {
        return bhi_run_out_of_memory(run);
    }
    info->struct_size = sizeof *info;
    bh_status status = bh_kernel_reflect(run->kernel, run->stream, reflect_limit_ns, info, &detail);
    if (status != BH_OK) {
        exit_status =
            bhi_session_fail(run->request.command, run->request.kernel_path, status, &detail);
    } else if (!bhi_run_match(&run->request, info, &complaint)) {
        exit_status = bhi_run_refused(run, BH_BINDING_MISMATCH, &complaint);
    }
    free(info);
    return exit_status;
}

static int check_files(struct bhi_run *run) {
    struct bhi_complaint complaint;
    struct bhi_complaint inner;
    int error;
    struct bhi_kernel_file file = {.path = run->request.kernel_path,
                                   .language = run->request.language};
    const bh_status status = bhi_kernel_file_read(&file, &run->code, &error, &inner);
    run->code_size = file.size;
    if (status != BH_OK) {
        bhi_refuse(&complaint, "KERNEL %.300s: %.600s", run->request.kernel_path, inner.text);
        return bhi_run_refused(run, status, &complaint);
    }
    if (!bhi_run_open_stdin(&run->request, &complaint)) {
        return bhi_run_refused(run, BH_LOAD_FAILED, &complaint);
    }
    return bhi_run_check_overlap(run);
}

int bhi_run_main(const struct bhi_args *args) {
    struct bhi_complaint complaint;
    struct bhi_run *run = calloc(1, sizeof *run);
    int exit_status;

    if (!run) {
        bhi_complain("run", "out of memory");
        return BHI_EXIT_ENVIRON;
    }
    bhi_run_begin(run);
    if (!bhi_run_request_parse(args, &run->request, &complaint)) {
        run->request.json = bhi_args_has(args, BHI_RUN_JSON); /* also after the bad one */
        return bhi_run_misused(run, &complaint);
    }
    (void)((exit_status = check_files(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_open_context(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_start_worker(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_check_sizes(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_choose_memory(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_load_all(run)) != BHI_EXIT_READY ||
           (exit_status = take_likes(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_check_sizes(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_open_all(run)) != BHI_EXIT_READY ||
           (exit_status = make_kernel(run)) != BHI_EXIT_READY ||
           (exit_status = check_types(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_fill_all(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_await_worker(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_compile(run)) != BHI_EXIT_READY ||
           (exit_status = match(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_await_all(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_submit_all(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_write_all(run)) != BHI_EXIT_READY);
    return bhi_run_end(run, exit_status);
}
