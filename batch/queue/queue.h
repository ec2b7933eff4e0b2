/* The queue of a batch: which jobs there are, what each waits for, what became of it; durable.
 *
 * This is the seam behind which other queues can stand. The runner (runner.h) takes jobs and
 * reports what became of them, through these calls alone; where the jobs come from (one file, a
 * service with several users, another machine) and how they are kept is the queue's affair. Jobs
 * can be added while others run.
 *
 * Here there is one: a graph in memory (graph.h) in front of a journal (journal.h), which is a
 * SQLite database in a state folder, or nothing (a benchmark's other side).
 *
 * What is durable when
 *   bhi_queue_add      before it returns: all of them, or none; with the first one, what a resumed
 *                      queue takes up again. Until then its folder is as it was found.
 *   _started           soon after; what a kill leaves out is only that the attempt began.
 *   _sealed            before its callback is called. From then on the outputs are only renamed,
 *                      never computed again: a kill between two renames is made good by resume.
 *   _ended             soon after (group commit, some milliseconds); the job's outputs are in place
 *                      when it is called. Dependents become takeable at once: their own records
 *                      come after it in the journal, so that none is there without it.
 *   bhi_queue_close    everything.
 *
 * Threads: any, unless said otherwise. Nothing but _open, _add, _flush and _close waits for a disk.
 * When the journal cannot be written (disk full) the queue is *broken*: take returns nothing any
 * more, callbacks of _sealed come with false, and bhi_queue_broken says why. What had been recorded
 * stays.
 */
#ifndef BHI_BATCH_QUEUE_QUEUE_H
#define BHI_BATCH_QUEUE_QUEUE_H

#include "batch/job/queued.h"

struct bhi_queue;

/* Opens the state folder, takes its lock, and reads what is there. The complaint names the folder
 * or file and what to do. */
enum bhi_queue_result bhi_queue_open(const struct bhi_queue_options *options,
                                     struct bhi_queue **out_queue, struct bhi_complaint *complaint);
/* Adds jobs: all or none. On a resumed queue those that are there already (same id, same text)
 * are skipped; the same id with another text takes the place of one that retry_failed takes up,
 * where it depends on the same jobs, and is refused otherwise. A resumed queue goes on with its
 * first call, which may be of no jobs. Refuses: an id twice (both lines), a
 * dependency that does not exist, a cycle (named: "a -> b -> a"), two jobs that write one path or
 * one that reads what another writes where neither depends on the other. Takes nothing over:
 * |specs| stay the caller's. */
enum bhi_queue_result bhi_queue_add(struct bhi_queue *queue, const struct bhi_job_spec *specs,
                                    size_t count, struct bhi_complaint *complaint);
/* Where paths in jobs are relative to: the current folder of the process that made the state. */
const char *bhi_queue_cwd(const struct bhi_queue *queue);
/* Hexadecimal, made with the state: part of the names of temporaries. */
const char *bhi_queue_batch_id(const struct bhi_queue *queue);

/* The next job to run: the highest priority, then the lowest number; sealed ones come first of
 * all. It is RUNNING then. Before a resumed queue's first _add there is none. NULL: none may run
 * now (see bhi_queue_counts whether any is left). */
struct bhi_job *bhi_queue_take(struct bhi_queue *queue);

/* An attempt has been given to a worker. */
void bhi_queue_started(struct bhi_queue *queue, struct bhi_job *job, uint32_t stream);
/* Its outputs are complete on disk under their temporary names; |outputs| is what they are
 * recognised by if an earlier process has sealed it (marks.h), copied. |attempt| is how and when
 * the attempt ended: a later process that finishes the job knows it from here alone. |then| is
 * called, from the journal's thread and soon, when that is durable (true) or cannot be (false:
 * leave them). Without a journal, or where there is no memory, it is called before this returns. It
 * must not add, flush or close. */
void bhi_queue_sealed(struct bhi_queue *queue, struct bhi_job *job,
                      const struct bhi_attempt *attempt, const char *outputs,
                      void (*then)(void *user, bool durable), void *user);

/* The attempt is over. Of a FAILED or QUARANTINED job all that depends on it, directly or not,
 * FAILS with it: their origin is the id of this job, or of the one where it began (the earliest is
 * kept; E7). |delay_ns| with WAITING: not taken again before that. Of a job that was taken sealed
 * this ends the attempt that sealed it: _started is not called for it, and its times, and what
 * worker and kernel it had, stay those recorded with the seal. Where that is WAITING or
 * CANCELLED it is not over: nothing is recorded, and it is as it was, sealed, to be taken again. */
void bhi_queue_ended(struct bhi_queue *queue, struct bhi_job *job,
                     const struct bhi_attempt *attempt, uint64_t delay_ns);

void bhi_queue_counts(struct bhi_queue *queue, struct bhi_queue_counts *out_counts);
/* Whether a loaded job has ended and is to run anew (retry_failed, redo). */
bool bhi_queue_runs_anew(struct bhi_queue *queue, const char *id);
/* Whether the journal has failed; the complaint (may be NULL) says how. */
bool bhi_queue_broken(struct bhi_queue *queue, struct bhi_complaint *complaint);
/* Waits until all that was recorded is durable. False: it is broken. */
bool bhi_queue_flush(struct bhi_queue *queue);
/* Flushes, closes, gives the lock back; frees. NULL is fine. False: something was not recorded. */
bool bhi_queue_close(struct bhi_queue *queue);

/* -- for reports: reads the journal; after a flush; not with a queue without one ----------------
 */

/* In order of number; of job and attempt. Strings are valid during the call. A visitor that returns
 * false ends it; it must not add, flush or close. False: the journal could not be read. */
bool bhi_queue_each_job(struct bhi_queue *queue,
                        bool (*visit)(void *user, const struct bhi_job_record *record), void *user);
bool bhi_queue_each_attempt(struct bhi_queue *queue,
                            bool (*visit)(void *user, const struct bhi_attempt_record *record),
                            void *user);

#endif
