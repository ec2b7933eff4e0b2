/* The journal of a queue: what must outlive the process, in a SQLite database in the state folder.
 *
 * A thread commits the queue's notes in groups. Each group is one transaction: at once if somebody
 * waits for it, otherwise after |linger_ns|. Groups keep the order of the notes, so what is durable
 * is always a beginning of what happened.
 *
 *   FOLDER/batch.db      the database (schema.h), with its -wal and -shm while it is open
 *   FOLDER/feed.jsonl    the same for readers on other machines (feed.h)
 *   FOLDER/lock          held while a process has the folder open (lock.h)
 */
#ifndef BHI_BATCH_JOURNAL_JOURNAL_H
#define BHI_BATCH_JOURNAL_JOURNAL_H

#include "batch/graph/graph.h"
#include "batch/journal/note.h"

struct bhi_journal;

/* Takes the lock, opens or makes the database, and starts the thread. *out_batch is the batch
 * there; without jobs, it is a new one. */
enum bhi_queue_result bhi_journal_open(const struct bhi_queue_options *options,
                                       struct bhi_journal **out_journal,
                                       struct bhi_journal_batch *out_batch,
                                       struct bhi_complaint *complaint);
/* Appends all jobs of the database to |graph|, ranked and not admitted; jobs that run again
 * (options) are in their new state. Does not change the database. */
enum bhi_queue_result bhi_journal_load(struct bhi_journal *journal,
                                       const struct bhi_queue_options *options,
                                       struct bhi_graph *graph, struct bhi_complaint *complaint);
/* Accepts what was loaded, and gives the database the present format. A journal that is closed
 * without this call leaves database and log unchanged, and removes a lock file that it has made. */
bool bhi_journal_accept(struct bhi_journal *journal, struct bhi_complaint *complaint);
/* Adds the nodes that are not admitted, in one transaction, after all earlier notes. With |resumed|
 * (may be NULL) the same transaction records which jobs bhi_journal_load took up with these
 * options, which states followed from that (state_unrecorded), and new lines (line_unrecorded). */
enum bhi_queue_result bhi_journal_add(struct bhi_journal *journal, const struct bhi_graph *graph,
                                      const struct bhi_queue_options *resumed,
                                      struct bhi_complaint *complaint);
/* Takes a copy of |note|, with its attempt and outputs. Cannot fail: a broken journal calls |then|
 * with false. Does not block. */
void bhi_journal_note(struct bhi_journal *journal, const struct bhi_note *note);
bool bhi_journal_flush(struct bhi_journal *journal);
bool bhi_journal_broken(struct bhi_journal *journal, struct bhi_complaint *complaint);
/* Returns false if something was not recorded. */
bool bhi_journal_close(struct bhi_journal *journal);

bool bhi_journal_each_job(struct bhi_journal *journal,
                          bool (*visit)(void *user, const struct bhi_job_record *record),
                          void *user);
bool bhi_journal_each_attempt(struct bhi_journal *journal,
                              bool (*visit)(void *user, const struct bhi_attempt_record *record),
                              void *user);

/* Visit the files that done or complete jobs have read; and those of the jobs that read one file. */
bool bhi_journal_each_file(struct bhi_journal *journal,
                           bool (*visit)(void *user, uint64_t number, const char *path,
                                         const char *mark),
                           void *user);
bool bhi_journal_each_user(struct bhi_journal *journal, uint64_t file,
                           bool (*visit)(void *user, const char *id), void *user);

#endif
