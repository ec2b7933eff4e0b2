/* Progress: what a worker reports about its lane. The worker writes this shared memory, and the
 * supervisor maps it read-only. The supervisor trusts none of it: it copies each word once, then
 * checks it (bhi_progress_poll).
 *
 *   page 0      struct bhi_progress_header
 *   page 1      struct bhi_markers, imported into the device: written by the device itself
 *   page 2 …    results[results], then errors[BHI_ERROR_SLOTS]
 *
 * The completion record of submission n (rule E11) is results[n & mask], followed by a store of
 * completed_seq = n with release. Submissions complete in lane order.
 */
#ifndef BHI_IPC_PROGRESS_H
#define BHI_IPC_PROGRESS_H

#include "base/detail.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BHI_PROGRESS_MAGIC   0x4250524fu /* "BPRO" */
#define BHI_PROGRESS_RESULTS 4096u       /* submissions in flight in one lane, at most */
#define BHI_ERROR_SLOTS      64u
#define BHI_ERROR_TEXT       BHI_REASON_TEXT
#define BHI_NO_COMMAND       UINT32_MAX
/* A worker keeps the pipelines of this many kernels. A kernel that has run is not compiled again
 * before so many others have run. */
#define BHI_WORKER_PIPELINES 256u

/* Written by the worker, except the first three words: the supervisor writes them once and never
 * reads them again. */
struct bhi_progress_header {
    uint32_t magic;
    uint32_t version;
    uint32_t results; /* entries; a power of two */
    /* Futex word: completed_seq modulo 2^32, stored right after it. A waiting host reads its cache
     * line, and the worker writes that for each result. Other words are in other lines. */
    _Alignas(64) _Atomic uint32_t completed_word;
    _Atomic uint64_t completed_seq;
    /* Bytes of the lane consumed. */
    _Atomic uint64_t tail;
    /* The newest submission that was handed to the device, or refused. */
    _Alignas(64) _Atomic uint64_t started_seq;
    /* 1 while the worker sleeps on lane.doorbell, or is about to. The host reads it for each
     * submission, and refused_allocations for each result. They and what follows are rarely
     * written. */
    _Alignas(64) _Atomic uint32_t sleeping;
    /* The newest submission that needed a compile, and the newest whose compile has ended. If the
     * worker dies or hangs between the two, the compiler is the cause. The doorbell rings when a
     * compile ends, because the time to run begins then. */
    _Atomic uint64_t compile_seq;
    _Atomic uint64_t run_seq;
    /* How many allocations failed in the worker (malloc, mmap). It distinguishes a death by the
     * memory limit from other deaths. */
    _Atomic uint64_t refused_allocations;
    /* How many threads could not be started although there was memory for them: processes and
     * threads are limited. */
    _Atomic uint64_t refused_threads;
    /* Loader: the submission that it loads for, and the bytes of it that are loaded. */
    _Atomic uint64_t load_seq;
    _Atomic uint64_t load_bytes;
    /* The current step of the start (BHI_STEP_*), for the message about a worker that dies while it
     * starts. If the start fails, the reason is written before the worker exits. */
    _Atomic uint32_t step;
    uint32_t step_status; /* bh_status, 0: none */
    struct bhi_told step_told;
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

/* Written by the device, in queue order, when several submissions share one vkQueueSubmit. They
 * tell which of these runs, and after a death which had started. They are no completion record. */
struct bhi_markers {
    _Atomic uint32_t started;   /* seq modulo 2^32 */
    _Atomic uint32_t completed; /* seq modulo 2^32 */
    /* Not 0: the worker, which has run no kernel, has let its device write host memory for copies.
     * When it is killed, that goes on until the device is released. */
    _Atomic uint32_t pinned;
};

struct bhi_result {
    uint64_t seq;
    uint64_t started_ns; /* CLOCK_MONOTONIC */
    uint64_t ended_ns;
    uint32_t status;        /* bh_status: BH_OK or a verdict */
    uint32_t command_index; /* which command failed, or BHI_NO_COMMAND */
    int32_t vk_result;
    uint32_t executed;   /* bh_executed of the failed submission */
    uint64_t device_ns;  /* BHI_RECORD_TIMED: how long the device was busy; 0: unknown */
    uint64_t bad_memory; /* BH_VULKAN: id of a buffer whose device memory is nothing to import */
    uint64_t unused;     /* so that each is one cache line: of every other one two would be read */
};

/* Why a submission failed, in errors[seq % BHI_ERROR_SLOTS]. */
struct bhi_error_slot {
    uint64_t seq;
    struct bhi_told told;
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
/* Writes the result of result->seq and, unless |why| is NULL, its error slot. Call
 * bhi_progress_publish afterwards. */
void bhi_progress_result(struct bhi_progress *progress, const struct bhi_result *result,
                         const struct bhi_why *why);
/* Publishes everything up to |seq|: tail, completed_seq, completed_word (each with release). Then
 * the caller fences, and calls bhi_progress_wake() if lane.waiters is not 0. */
void bhi_progress_publish(struct bhi_progress *progress, uint64_t seq, uint64_t tail);
void bhi_progress_wake(struct bhi_progress *progress);
void bhi_progress_step(struct bhi_progress *progress, enum bhi_step step);
void bhi_progress_step_failed(struct bhi_progress *progress, const struct bhi_why *why);

/* -- supervisor side ------------------------------------------------------------------------ */
struct bhi_progress_view {
    const struct bhi_progress_header *header;
    const struct bhi_markers *markers;
    const struct bhi_result *results;
    const struct bhi_error_slot *errors;
    uint32_t mask;
    size_t bytes;
    int fd;
    uint64_t seen_completed; /* as of the last accepted poll */
    uint64_t seen_tail;
};

/* Creates, sizes, seals (SHRINK|GROW|SEAL) and maps it read-only. Returns 0 or -errno. */
int bhi_progress_create(struct bhi_progress_view *view, uint32_t results);
void bhi_progress_destroy(struct bhi_progress_view *view);
/* Reads completed_seq and tail once. |published| and |head| are what the supervisor has published.
 * Returns 0, or -EPROTO if the worker lies: seq beyond |published|, tail beyond |head|, or either
 * moves backwards. Then ignore all that this worker writes. */
int bhi_progress_poll(struct bhi_progress_view *view, uint64_t published, uint64_t head,
                      uint64_t *out_completed, uint64_t *out_tail);
/* Copies the result of |seq|, which must be completed, and checks it: seq matches, status is BH_OK
 * or a code that a worker may report, executed is in range, the reason is one that it may give with
 * that status. Times in the future are clamped. |out_told| gets the reason, with clean texts, or
 * zeros; |text| its sentence, or "". Returns 0 or -EPROTO. */
int bhi_progress_read(const struct bhi_progress_view *view, uint64_t seq, struct bhi_result *out,
                      struct bhi_told *out_told, char text[BHI_ERROR_TEXT]);
/* After a death: the newest submission that may have started, from |completed| (none) to
 * |published|. */
uint64_t bhi_progress_started(const struct bhi_progress_view *view, uint64_t completed,
                              uint64_t published);
const char *bhi_step_name(uint32_t step);

#endif
