/* The steps of a piece of work: files in, a worker, a kernel, submissions, files out. What `run`
 * and `eval` have in common; each has an order of its own, and steps of its own between them. Each
 * step returns an exit status, BHI_EXIT_READY to go on; what went wrong has been said by then.
 */
#ifndef BHI_CLI_RUN_STEPS_H
#define BHI_CLI_RUN_STEPS_H

#include "request/run.h"
#include "tool/ending.h"
#include "tool/verdict.h"

struct bhi_run {
    struct bhi_run_request request;
    void *code; /* owned */
    size_t code_size;
    bh_context *context;
    bh_stream *stream;
    bh_kernel *kernel;
    struct { /* of the device; the selector is empty where nobody has asked (limits.h) */
        char selector[48];
        uint64_t storage_range;
        uint32_t storage_alignment;
    } limits;
    const bh_command *commands; /* each a submission; borrowed. NULL: one, as the request has it */
    uint32_t command_count;
    struct bhi_run_outcome outcome;
    struct bhi_ending ending; /* is being watched */
};

/* Both complain, and return the exit status that it leads to. */
int bhi_run_refused(const struct bhi_run *run, bh_status status,
                    const struct bhi_complaint *complaint);
int bhi_run_out_of_memory(const struct bhi_run *run);

/* No output replaces what the run reads. */
int bhi_run_check_overlap(struct bhi_run *run);
int bhi_run_open_context(struct bhi_run *run);
/* Makes the stream, whose worker starts meanwhile. */
int bhi_run_start_worker(struct bhi_run *run);
/* Makes request.memory HOST where this device has no memory of its own; with AUTO large arrays are
 * on the device otherwise. Where that depends on the device it waits for the worker. */
int bhi_run_choose_memory(struct bhi_run *run);
/* The inputs' arrays are known then, and they are being read. */
int bhi_run_load_all(struct bhi_run *run);
/* Proves that every output can be written. */
int bhi_run_open_all(struct bhi_run *run);
int bhi_run_fill_all(struct bhi_run *run);
int bhi_run_await_worker(struct bhi_run *run);
/* Has run->kernel compiled. */
int bhi_run_compile(struct bhi_run *run);
int bhi_run_await_all(struct bhi_run *run);
int bhi_run_submit_all(struct bhi_run *run);
/* One that is not among those that are counted and timed. */
int bhi_run_submit_apart(struct bhi_run *run, const bh_submit_info *info);
int bhi_run_write_all(struct bhi_run *run);

/* What |run| is about, the arguments apart: to be called first. */
void bhi_run_begin(struct bhi_run *run);
/* The arguments are none; |complaint| says why. Frees everything; returns the exit status. */
int bhi_run_misused(struct bhi_run *run, const struct bhi_complaint *complaint);
/* Prints what is left to say and frees everything, |run| too. Returns |exit_status|. */
int bhi_run_end(struct bhi_run *run, int exit_status);

#endif
