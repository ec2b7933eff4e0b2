/* One attempt: which list it is in, how it ends, and what it gives back. */
#ifndef BHI_BATCH_RUNNER_WORK_H
#define BHI_BATCH_RUNNER_WORK_H

#include "batch/runner/state.h"

/* Tells the main thread that there is something to do. */
void bhi_runner_wake(struct bhi_runner *runner);
/* Moves a work of the caller to |stage| in the counts. Call it with the lock. */
void bhi_work_enter(struct bhi_work *work, enum bhi_work_stage stage);
/* Sets when the attempt began and ended, as calendar times, from its verdict. */
void bhi_work_set_times(struct bhi_attempt *attempt);
/* Ends the attempt, whose verdict the caller has filled in, and gives it to the main thread. */
void bhi_work_end(struct bhi_work *work);
/* Ends the attempt without an event, or with another verdict than the event's. Returns false: the
 * work is over. */
bool bhi_work_refuse(struct bhi_work *work, bh_status status, int sys_errno, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
/* Returns the deadline for its submission. It covers all pieces of an expression: `bulkhead eval`
 * gives each piece this deadline. */
uint64_t bhi_work_deadline(const struct bhi_work *work);
/* Writes the temporary name of binding |index|. */
void bhi_work_temporary(const struct bhi_work *work, uint32_t index, char *out, size_t capacity);
/* Releases what was staged: buffers, cache entries, memory. */
void bhi_work_release(struct bhi_work *work);
/* Returns the status for a job whose file the system refuses: BH_SYSTEM if that may pass, else
 * |otherwise|. */
bh_status bhi_work_blame(int sys_errno, bh_status otherwise);
/* Gives |work| to the finishers; |list| is to_write or to_place. Call it with the lock. */
void bhi_runner_finish(struct bhi_runner *runner, struct bhi_work_list *list,
                       struct bhi_work *work);

#endif
