/* The queue of a batch: its jobs, what each waits for, and how each ended; durable.
 *
 * Other queues can implement this interface. The runner (runner.h) takes jobs and reports their
 * ends through these calls alone. Where the jobs come from (one file, a service with several users,
 * another machine) and how they are stored is up to the queue. Jobs can be added while others run.
 *
 * This implementation is a graph in memory (graph.h) and a journal (journal.h), which is a SQLite
 * database in a state folder. A benchmark uses it without a journal.
 *
 * When records are durable:
 *   bhi_queue_add      before it returns: all jobs, or none. The first call also records which jobs
 *                      of a resumed queue run again. Until then the folder is unchanged.
 *   _started           soon after. A kill before that loses only the start of the attempt.
 *   _sealed            before its callback is called. From then on the outputs are only renamed and
 *                      never computed again: after a kill between two renames, resume goes on.
 *   _ended             soon after (group commit, some milliseconds). The job's outputs are in place
 *                      when it is called. Dependents can be taken at once: the journal has their
 *                      records after this one, so it never has theirs without it.
 *   bhi_queue_close    everything.
 *
 * Threads: any, unless a comment says otherwise. Only _open, _add, _flush and _close wait for a
 * disk. If the journal cannot be written (disk full), the queue is *broken*: take returns NULL,
 * callbacks of _sealed get false, and bhi_queue_broken says why. What was recorded stays.
 */
#ifndef BHI_BATCH_QUEUE_QUEUE_H
#define BHI_BATCH_QUEUE_QUEUE_H

#include "batch/job/queued.h"
#include "batch/journal/used.h"

struct bhi_queue;

/* Opens the state folder, takes its lock, and reads what is in it. The complaint names the folder
 * or file, and says what to do. */
enum bhi_queue_result bhi_queue_open(const struct bhi_queue_options *options,
                                     struct bhi_queue **out_queue, struct bhi_complaint *complaint);
/* Adds all jobs or none. On a resumed queue, jobs that are there already (same id, same text) are
 * skipped. The same id with another text replaces a job that retry_failed runs again, if it depends
 * on the same jobs; otherwise it is refused. A resumed queue starts with its first call, which may
 * be of no jobs. Refuses an id that is given twice (names both lines), a dependency that does not
 * exist, a cycle (named: "a -> b -> a"), and two jobs of which one writes a path that the other
 * reads or writes, if neither depends on the other. The caller keeps |specs|. */
enum bhi_queue_result bhi_queue_add(struct bhi_queue *queue, const struct bhi_job_spec *specs,
                                    size_t count, struct bhi_complaint *complaint);
/* Returns the folder that paths of jobs are relative to: the current folder of the process that
 * made the state. */
const char *bhi_queue_cwd(const struct bhi_queue *queue);
/* Returns the file of jobs that a resumed batch began with, if it is not the one in the options, or
 * NULL: for messages. */
const char *bhi_queue_other_jobs(const struct bhi_queue *queue);
/* Returns the id that was made with the state, in hexadecimal: a part of the names of temporary
 * files. */
const char *bhi_queue_batch_id(const struct bhi_queue *queue);

/* Takes the next job to run, which is then RUNNING: sealed ones first, then by highest priority,
 * then by lowest number. Returns NULL if no job may run now (bhi_queue_counts says whether any is
 * left), and before a resumed queue's first _add. */
struct bhi_job *bhi_queue_take(struct bhi_queue *queue);

/* Call it when an attempt was given to a worker. */
void bhi_queue_started(struct bhi_queue *queue, struct bhi_job *job, uint32_t stream);
/* Call it when the outputs are complete on disk under their temporary names. |outputs| (copied) are
 * the marks by which a later process recognises them (marks.h). |used| (copied; NULL: not known)
 * are the files that the attempt has read. |attempt| is how and when the
 * attempt ended: a process that later finishes the job knows this only from here. |then| is called
 * soon, on the journal's thread: with true when all this is durable, with false if it cannot be
 * (then leave the files). Without a journal or memory it is called before this returns. It must not
 * add, flush or close. */
void bhi_queue_sealed(struct bhi_queue *queue, struct bhi_job *job,
                      const struct bhi_attempt *attempt, const char *outputs,
                      const struct bhi_used *used, void (*then)(void *user, bool durable),
                      void *user);

/* Ends the attempt. With FAILED or QUARANTINED, all jobs that depend on this one, directly or not,
 * FAIL too; their origin is this job, or the one where its failure began (the earliest counts; E7).
 * |delay_ns| with WAITING: the job is not taken again before that. If the job was taken sealed,
 * this ends the attempt that sealed it: _started is not called, and its times, worker and kernel
 * stay as recorded with the seal. With WAITING or CANCELLED such an attempt does not end: nothing
 * is recorded, and the job stays sealed, to be taken again. */
void bhi_queue_ended(struct bhi_queue *queue, struct bhi_job *job,
                     const struct bhi_attempt *attempt, uint64_t delay_ns);

void bhi_queue_counts(struct bhi_queue *queue, struct bhi_queue_counts *out_counts);
/* Has this loaded job ended, and will it run again (retry_failed, redo)? */
bool bhi_queue_runs_anew(struct bhi_queue *queue, const char *id);
/* Has the journal failed? The complaint (may be NULL) says how. */
bool bhi_queue_broken(struct bhi_queue *queue, struct bhi_complaint *complaint);
/* Waits until everything recorded is durable. Returns false if the journal is broken. */
bool bhi_queue_flush(struct bhi_queue *queue);
/* Flushes, closes, unlocks and frees. NULL is allowed. Returns false if something was not
 * recorded. */
bool bhi_queue_close(struct bhi_queue *queue);

/* -- for reports: reads the journal; after a flush; not with a queue without one ------------- */

/* Visit all jobs by number, and all attempts by job and number. Strings are valid during the visit.
 * A visitor that returns false ends the call; it must not add, flush or close. Returns false if the
 * journal could not be read. */
bool bhi_queue_each_job(struct bhi_queue *queue,
                        bool (*visit)(void *user, const struct bhi_job_record *record), void *user);
bool bhi_queue_each_attempt(struct bhi_queue *queue,
                            bool (*visit)(void *user, const struct bhi_attempt_record *record),
                            void *user);
/* Visit the files that done or complete jobs have read, by path, each with the mark of what was read
 * (bhi_used_mark_read); and the ids of those jobs that have read |file|. A visitor must call
 * neither. */
bool bhi_queue_each_file(struct bhi_queue *queue,
                         bool (*visit)(void *user, uint64_t number, const char *path,
                                       const char *mark),
                         void *user);
bool bhi_queue_each_user(struct bhi_queue *queue, uint64_t file,
                         bool (*visit)(void *user, const char *id), void *user);

#endif
