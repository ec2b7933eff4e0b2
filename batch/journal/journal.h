/* The journal of a queue: what must outlive the process, in a SQLite database in the state folder.
 *
 * A thread commits what the queue notes in groups, each one transaction: at once where somebody
 * waits for it, after |linger_ns| otherwise. Groups are in the order of the notes, so that what is
 * durable is always a beginning of what happened.
 *
 *   FOLDER/batch.db      the database (schema.h), with its -wal and -shm while it is open
 *   FOLDER/lock          flock'ed while a process has the folder open; its pid is in it, after the
 *                        word "used" where the database's file has jobs
 */
#ifndef BHI_BATCH_JOURNAL_JOURNAL_H
#define BHI_BATCH_JOURNAL_JOURNAL_H

#include "batch/graph/graph.h"
#include "batch/journal/note.h"

struct bhi_journal;

/* Takes the lock, opens or makes the database, starts the thread. *out_batch is what is there; with
 * no jobs in it, it is a new one. */
enum bhi_queue_result bhi_journal_open(const struct bhi_queue_options *options,
                                       struct bhi_journal **out_journal,
                                       struct bhi_journal_batch *out_batch,
                                       struct bhi_complaint *complaint);
/* Appends all that the database has to |graph|, ranked, not admitted, and what is to be taken up
 * again (options) as it will be. The database is as it was. */
enum bhi_queue_result bhi_journal_load(struct bhi_journal *journal,
                                       const struct bhi_queue_options *options,
                                       struct bhi_graph *graph, struct bhi_complaint *complaint);
/* All that was there is fine. A journal that is closed without it leaves database and log as they
 * were, and no lock that was not there. */
void bhi_journal_accept(struct bhi_journal *journal);
/* Adds the nodes that are not admitted, in one transaction, after all notes before it. |resumed|
 * (may be NULL): in the same one what bhi_journal_load took up with these options, what followed
 * from it (state_unrecorded), and lines that are new (line_unrecorded). */
enum bhi_queue_result bhi_journal_add(struct bhi_journal *journal, const struct bhi_graph *graph,
                                      const struct bhi_queue_options *resumed,
                                      struct bhi_complaint *complaint);
/* Takes a copy of |note|, its attempt and its outputs. Cannot fail: a journal that is broken
 * answers |then| with false. Does not block. */
void bhi_journal_note(struct bhi_journal *journal, const struct bhi_note *note);
bool bhi_journal_flush(struct bhi_journal *journal);
bool bhi_journal_broken(struct bhi_journal *journal, struct bhi_complaint *complaint);
/* False: something was not recorded. */
bool bhi_journal_close(struct bhi_journal *journal);

bool bhi_journal_each_job(struct bhi_journal *journal,
                          bool (*visit)(void *user, const struct bhi_job_record *record),
                          void *user);
bool bhi_journal_each_attempt(struct bhi_journal *journal,
                              bool (*visit)(void *user, const struct bhi_attempt_record *record),
                              void *user);

#endif
