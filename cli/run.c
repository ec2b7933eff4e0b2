/* bulkhead run.
 *
 * Order: what can be refused without a worker is; then the worker starts while a loader parses the
 * inputs' headers and reads them; the kernel is compiled and what it binds is compared with what
 * was given; only then, and when the inputs are there, it runs.
 */
#include <bulkhead/bulkhead.h>
#include <stdlib.h>

#include "args.h"
#include "exit_status.h"
#include "kernel_file.h"
#include "run_files.h"
#include "run_launch.h"
#include "run_match.h"
#include "run_steps.h"
#include "session.h"

/* The kernel is compiled by then: what is left is to hear what it binds. */
static const uint64_t reflect_limit_ns = 10000000000u;

static int make_kernel(struct bhi_run *run) {
    const struct bhi_run_request *request = &run->request;
    bh_kernel_options options;
    const struct bhi_kernel_file file = {.path = request->kernel_path,
                                         .code = run->code,
                                         .size = run->code_size,
                                         .source = request->source};

    bhi_run_request_kernel_options(request, &options);
    return bhi_kernel_file_make(request->command, &file, &run->context, &options, &run->kernel);
}

/* Holds the request against what the kernel binds. */
static int match(struct bhi_run *run) {
    struct bhi_complaint complaint;
    bh_detail detail = {0};
    int exit_status = BHI_EXIT_READY;
    bh_kernel_info *info = calloc(1, sizeof *info);
    if (!info)
        return bhi_run_out_of_memory(run);
    bh_status status = bh_kernel_reflect(run->kernel, run->stream, reflect_limit_ns, info, &detail);
    if (status != BH_OK) {
        bhi_session_fail(run->request.command, run->request.kernel_path, status, &detail);
        exit_status = bhi_verdict_exit_status(status);
    } else if (!bhi_run_match(&run->request, info, &complaint)) {
        exit_status = bhi_run_refused(run, &complaint);
    }
    free(info);
    return exit_status;
}

static int check_files(struct bhi_run *run) {
    struct bhi_complaint complaint;
    struct bhi_complaint inner;
    int error;
    if (!bhi_kernel_file_read(run->request.kernel_path, &run->code, &run->code_size, &error,
                              &inner)) {
        bhi_refuse(&complaint, "KERNEL %.300s: %.600s", run->request.kernel_path, inner.text);
        return bhi_run_refused(run, &complaint);
    }
    if (!bhi_run_open_stdin(&run->request, &complaint))
        return bhi_run_refused(run, &complaint);
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
    if (!bhi_run_request_parse(args, &run->request, &complaint)) {
        bhi_complain("run", "%s; see bulkhead run --help", complaint.text);
        free(run);
        return BHI_EXIT_USAGE;
    }
    (void)((exit_status = check_files(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_open_context(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_start_worker(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_load_all(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_open_all(run)) != BHI_EXIT_READY ||
           (exit_status = make_kernel(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_fill_all(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_await_worker(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_compile(run)) != BHI_EXIT_READY ||
           (exit_status = match(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_await_all(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_submit_all(run)) != BHI_EXIT_READY ||
           (exit_status = bhi_run_write_all(run)) != BHI_EXIT_READY);
    return bhi_run_end(run, exit_status);
}
