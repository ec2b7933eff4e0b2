/* The steps that `run` and `eval` have in common: load files, start a worker, make a kernel,
 * submit, write files. Each command has its own order, and further steps between these. Each step
 * returns an exit status; BHI_EXIT_READY means go on, and otherwise it has reported the error. */
#ifndef BHI_CLI_RUN_STEPS_H
#define BHI_CLI_RUN_STEPS_H

#include "request/kernel_file.h"
#include "request/run.h"
#include "tool/args.h"
#include "tool/ending.h"
#include "tool/verdict.h"

struct bhi_run {
    struct bhi_run_request request;
    void *code; /* owned */
    size_t code_size;
    bh_context *context;
    bh_stream *stream;
    bh_kernel *kernel;
    struct { /* of the device; the selector is empty if the device was not asked */
        char selector[48];
        uint64_t storage_range;
        uint32_t storage_alignment;
    } limits;
    const bh_command *commands; /* each is a submission; borrowed. NULL: one, from the request */
    uint32_t command_count;
    struct bhi_run_outcome outcome;
    struct bhi_ending ending; /* the process's ending is being watched */
};

/* Both complain and return the exit status. */
int bhi_run_refused(const struct bhi_run *run, bh_status status,
                    const struct bhi_complaint *complaint);
int bhi_run_out_of_memory(const struct bhi_run *run);

/* Asks a worker once about the run's device. If there is no such device, |run->limits| stays empty;
 * making the stream reports it. */
int bhi_run_fetch_limits(struct bhi_run *run);
/* Refuses arrays that are larger than what the device binds, before a file is loaded: known arrays,
 * and files by their size. */
int bhi_run_check_sizes(struct bhi_run *run);

/* Reads the header of standard input, if that is an input. */
bool bhi_run_open_stdin(struct bhi_run_request *request, struct bhi_complaint *complaint);
/* Checks that no output replaces a file that the run reads. */
int bhi_run_check_overlap(struct bhi_run *run);
int bhi_run_open_context(struct bhi_run *run);
/* Makes the stream; its worker starts meanwhile. */
int bhi_run_start_worker(struct bhi_run *run);
/* Makes request.memory HOST if the device has no memory of its own. Otherwise, with AUTO, large
 * arrays are in device memory. If the device decides, it waits for the worker. */
int bhi_run_choose_memory(struct bhi_run *run);
/* Starts to load the inputs that are files; afterwards their arrays are known. The library's loader
 * parses and reads them. */
int bhi_run_load_all(struct bhi_run *run);
/* Checks that every output can be written. Call it after the inputs' headers are known: --inout
 * takes its shape from them. */
int bhi_run_open_all(struct bhi_run *run);
/* Makes the missing buffers, and reads standard input into its buffer. */
int bhi_run_fill_all(struct bhi_run *run);
int bhi_run_await_worker(struct bhi_run *run);
/* Compiles run->kernel. */
int bhi_run_compile(struct bhi_run *run);
/* Waits until the inputs are loaded. Shows a progress bar on a terminal if this takes long. */
int bhi_run_await_all(struct bhi_run *run);
int bhi_run_submit_all(struct bhi_run *run);
/* Submits work that is not counted or timed. */
int bhi_run_submit_apart(struct bhi_run *run, const bh_submit_info *info);
/* Writes all outputs, then puts them in their places. */
int bhi_run_write_all(struct bhi_run *run);

/* As bhi_run_await_all; with POISONED the caller must report *out_verdict. */
int bhi_run_await_inputs(struct bhi_run_request *request, bh_verdict *out_verdict);
/* Ends loads that a signal has interrupted. Call it after the context was destroyed. */
void bhi_run_end_loads(struct bhi_run_request *request);

/* Call this first: fills in what does not depend on the arguments. */
void bhi_run_begin(struct bhi_run *run);
/* For bad arguments; |complaint| says why. Frees everything. Returns the exit status. */
int bhi_run_misused(struct bhi_run *run, const struct bhi_complaint *complaint);
/* Prints final messages, and frees everything, also |run|. Returns |exit_status|. */
int bhi_run_end(struct bhi_run *run, int exit_status);

/* Takes an option of `compile` and `inspect`: those of a kernel's file, and --entry. Others change
 * nothing. */
bool bhi_kernel_file_take(struct bhi_kernel_file *file, const char **entry,
                          const struct bhi_arg *item, struct bhi_complaint *complaint);
/* `bulkhead run`, from its command line to its exit status. */
int bhi_run_main(const struct bhi_args *args);

#endif
