/* Named steps of a job on its way to disk, for tests to kill the program at; compiled into the
 * test's build only (BHI_STEP_POINTS=1, tests/batch): the shipped program has none of it.
 *   batch_taken      RUNNING in memory, nothing is recorded
 *   batch_submitted  a worker has it
 *   batch_ended      READY, nothing is written
 *   batch_written    one output is complete under its temporary name
 *   batch_sealing    all are; the record has not been asked for
 *   batch_sealed     the record is durable, nothing is renamed
 *   batch_renamed    one output is in its place
 *   batch_placed     all are, and durable; DONE has not been asked for
 *   batch_done       DONE has been asked for
 * And some where the program is not killed, but made to meet a signal at the wrong time:
 *     stage_begun      it was taken, and nothing has been looked at
 *     stage_ready      what a job needs is there; it is not in its stream's list yet
 *     stopped          what was in those lists has been cancelled
 */
#ifndef BHI_BATCH_RUNNER_STEP_H
#define BHI_BATCH_RUNNER_STEP_H

#if BHI_STEP_POINTS
void bhi_batch_step(const char *name);
#define BHI_BATCH_STEP(name) bhi_batch_step(name)
#else
#define BHI_BATCH_STEP(name) ((void)0)
#endif

#endif
