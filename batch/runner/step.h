/* Named steps of a job on its way to disk, at which tests kill the program. Compiled only into the
 * build for tests (BHI_STEP_POINTS=1, tests/batch), not into the shipped program.
 *   batch_taken      RUNNING in memory, nothing is recorded
 *   batch_submitted  a worker has it
 *   batch_ended      READY, nothing is written
 *   batch_written    one output is complete under its temporary name
 *   batch_sealing    all are complete; the record has not been requested
 *   batch_sealed     the record is durable, nothing is renamed
 *   batch_renamed    one output is in its place
 *   batch_placed     all are in their places, and durable; DONE has not been requested
 *   batch_done       DONE has been requested
 * At the following steps the program gets a signal and is not killed:
 *     stage_begun      the job was taken, and nothing is checked yet
 *     stage_ready      what a job needs is ready; it is not in its stream's list yet
 *     stopped          the works in those lists were cancelled
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
