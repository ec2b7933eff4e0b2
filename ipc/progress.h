/* Progress: what a worker says about its lane, in shared memory that the worker writes and the
 * supervisor maps read-only. The supervisor trusts none of it: each word is copied once, then
 * checked (bhi_progress_poll).
 *
 *   page 0      struct bhi_progress_header
 *   page 1      struct bhi_markers, imported into the device: written by the device itself
 *   page 2 …    results[results], then errors[BHI_ERROR_SLOTS]
 *
 * The completion record of submission n (rule E11) is: results[n & mask] written, then
 * completed_seq = n stored with release. Submissions complete in lane order.
 */
#ifndef BHI_IPC_PROGRESS_H
#define BHI_IPC_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BHI_PROGRESS_MAGIC   0x4250524fu /* "BPRO" */
#define BHI_PROGRESS_RESULTS 4096u       /* submissions in flight in one lane, at most */
#define BHI_ERROR_SLOTS      64u
#define BHI_ERROR_TEXT       512u
#define BHI_NO_COMMAND       UINT32_MAX
/* A worker keeps the pipelines of so many kernels: one that has run is not compiled again before so
 * many others have come. */
#define BHI_WORKER_PIPELINES 256u

/* Written by the worker, all but the first three words: those the supervisor writes when it makes
 * it, and never looks at again. */
struct bhi_progress_header {
    uint32_t magic;
    uint32_t version;
    uint32_t results; /* entries; a power of two */
    /* Futex word: completed_seq modulo 2^32, stored right after it. */
    _Alignas(64) _Atomic uint32_t completed_word;
    /* 1 while the worker sleeps, or is about to, on lane.doorbell. */
    _Atomic uint32_t sleeping;
    _Atomic uint64_t completed_seq;
    /* The newest submission that has been handed to the device (or refused). */
    _Atomic uint64_t started_seq;
    /* The newest submission that had to be compiled first, and the newest of those for which that
     * is over: what it dies of, or hangs in, between the two is the compiler. The doorbell rings
     * when it is over: the time that it has to run begins. */
    _Atomic uint64_t compile_seq;
    _Atomic uint64_t run_seq;
    /* Bytes of the lane consumed. */
    _Atomic uint64_t tail;
    /* How many allocations failed in the worker (malloc, mmap): they tell a death by memory limit
     * from any other. */
    _Alignas(64) _Atomic uint64_t refused_allocations;
    /* A loader: the submission that it loads for, and how many bytes of that are there. */
    _Atomic uint64_t load_seq;
    _Atomic uint64_t load_bytes;
    /* Start-up: the step that the worker is in (BHI_STEP_*), so that a death while starting has a
     * name; on failure errno and one line, written before it exits. */
    _Atomic uint32_t step;
    int32_t step_error;
    uint32_t step_status; /* bh_status, 0: none */
    char step_text[BHI_ERROR_TEXT];
};

/* Start-up steps, in order; names in progress.c. */
enum bhi_step {
    BHI_STEP_FORKED,
    BHI_STEP_SANDBOX,
    BHI_STEP_CONTROL,
    BHI_STEP_DEVICE,
    BHI_STEP_WARM_UP,
    BHI_STEP_LOCK_DOWN,
    BHI_STEP_RUNNING,
    BHI_STEP_COUNT
};

/* Written by the device, in queue order, when several submissions share one vkQueueSubmit: they
 * say after a death which of them had been started. Not a completion record. */
struct bhi_markers {
    _Atomic uint32_t started;   /* seq modulo 2^32 */
    _Atomic uint32_t completed; /* seq modulo 2^32 */
};

struct bhi_result {
    uint64_t seq;
    uint64_t started_ns; /* CLOCK_MONOTONIC */
    uint64_t ended_ns;
    uint32_t status;        /* bh_status: BH_OK or a verdict */
    uint32_t command_index; /* which command failed, or BHI_NO_COMMAND */
    int32_t vk_result;
    uint32_t executed;  /* bh_executed of the failed submission */
    uint64_t device_ns; /* BHI_RECORD_TIMED: how long the device was busy with it; 0: not known */
};

/* The text of a failed submission, in errors[seq % BHI_ERROR_SLOTS]. */
struct bhi_error_slot {
    uint64_t seq;
    char text[BHI_ERROR_TEXT];
};

/* Bytes of a progress memfd with |results| entries. */
size_t bhi_progress_bytes(uint32_t results);

/* -- worker side ---------------------------------------------------------------------------- */
struct bhi_progress {
    struct bhi_progress_header *header;
    struct bhi_markers *markers;
    struct bhi_result *results;
    struct bhi_error_slot *errors;
    uint32_t mask;
    size_t bytes;
};

/* Verifies seals and size, maps read-write. Returns 0 or -errno. */
int bhi_progress_map(struct bhi_progress *progress, int fd, uint64_t bytes);
void bhi_progress_unmap(struct bhi_progress *progress);
/* Writes the result of result->seq and, with |text|, its error slot. Publish comes after. */
void bhi_progress_result(struct bhi_progress *progress, const struct bhi_result *result,
                         const char *text);
/* Publishes everything up to |seq|: tail, completed_seq, completed_word (each with release). The
 * caller then wakes: bhi_progress_wake() where lane.waiters is not 0 after a full fence. */
void bhi_progress_publish(struct bhi_progress *progress, uint64_t seq, uint64_t tail);
void bhi_progress_wake(struct bhi_progress *progress);
void bhi_progress_step(struct bhi_progress *progress, enum bhi_step step);
void bhi_progress_step_failed(struct bhi_progress *progress, uint32_t status, int error,
                              const char *text);

/* -- supervisor side ------------------------------------------------------------------------ */
struct bhi_progress_view {
    const struct bhi_progress_header *header;
    const struct bhi_markers *markers;
    const struct bhi_result *results;
    const struct bhi_error_slot *errors;
    uint32_t mask;
    size_t bytes;
    int fd;
    uint64_t seen_completed; /* what the last poll accepted */
    uint64_t seen_tail;
};

/* Creates, sizes, seals (SHRINK|GROW|SEAL) and maps it read-only. Returns 0 or -errno. */
int bhi_progress_create(struct bhi_progress_view *view, uint32_t results);
void bhi_progress_destroy(struct bhi_progress_view *view);
/* Reads completed_seq and tail once. |published| and |head| are what the supervisor published.
 * Returns 0, or -EPROTO where the worker lies: seq beyond |published| or moving backwards, tail
 * beyond |head| or moving backwards. After a lie nothing of this worker counts. */
int bhi_progress_poll(struct bhi_progress_view *view, uint64_t published, uint64_t head,
                      uint64_t *out_completed, uint64_t *out_tail);
/* Copies the result of |seq| (which must be completed) and checks it: seq matches, status is BH_OK
 * or a code that a worker may report, executed in range, times not in the future (clamped).
 * |text| gets the error's text (sanitised, NUL-terminated) or "". Returns 0 or -EPROTO. */
int bhi_progress_read(const struct bhi_progress_view *view, uint64_t seq, struct bhi_result *out,
                      char text[BHI_ERROR_TEXT]);
/* After a death: the newest submission that may have been started, in [completed, published];
 * |completed| itself: none was. */
uint64_t bhi_progress_started(const struct bhi_progress_view *view, uint64_t completed,
                              uint64_t published);
const char *bhi_step_name(uint32_t step);

#endif
