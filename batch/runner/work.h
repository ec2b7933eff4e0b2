/* The course of one attempt: which list it is in, how it ends, and what it gives back. */
#ifndef BHI_BATCH_RUNNER_WORK_H
#define BHI_BATCH_RUNNER_WORK_H

#include "batch/runner/state.h"

/* There is something for the main thread to do. With the lock. */
void bhi_runner_wake(struct bhi_runner *runner);
/* Moves a work that the caller has on to |stage|, in the counts. With the lock. */
void bhi_work_enter(struct bhi_work *work, enum bhi_work_stage stage);
/* When the attempt began and ended, by the calendar, from its verdict. */
void bhi_work_set_times(struct bhi_attempt *attempt);
/* The attempt is over; the caller has filled in the verdict. Gives it to the main thread. */
void bhi_work_end(struct bhi_work *work);
/* The attempt ends without an event, or with another verdict than the event's. */
void bhi_work_refuse(struct bhi_work *work, bh_status status, int sys_errno, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
/* For its submission: of all pieces of an expression together, as `bulkhead eval` has a deadline
 * for each, however many they are. */
uint64_t bhi_work_deadline(const struct bhi_work *work);
/* The temporary name of binding |index|. */
void bhi_work_temporary(const struct bhi_work *work, uint32_t index, char *out, size_t capacity);
/* Gives back what was staged: buffers, cache entries, memory. */
void bhi_work_release(struct bhi_work *work);
/* What a job is told whose file the system refuses: BH_SYSTEM may pass by, |otherwise| not. */
bh_status bhi_work_blame(int sys_errno, bh_status otherwise);
/* Gives |work| to the finishers: |list| is to_write or to_place. With the lock. */
void bhi_runner_finish(struct bhi_runner *runner, struct bhi_work_list *list,
                       struct bhi_work *work);

#endif
