/* The journal of a judging: the verdicts that are known, in a state folder, so that they outlive
 * the process.
 *
 *   FOLDER/judge.jsonl   a line that says which judging it is, then one for each verdict, in the
 *                        order in which they were found; each is on the disk before the next
 *   FOLDER/lock          see batch/journal/lock.h
 *
 *   open -> seeds -> begin -> find, note … -> close
 */
#ifndef BHI_JUDGE_JOURNAL_JOURNAL_H
#define BHI_JUDGE_JOURNAL_JOURNAL_H

#include "batch/journal/lock.h"
#include "batch/journal/state_folder.h"
#include "judge/check/candidate.h"

struct bhi_judge_journal {
    const char *path; /* of the folder, as given; borrowed */
    struct bhi_state_folder folder;
    struct bhi_lock lock;
    int fd;          /* of judge.jsonl; -1: closed */
    json_t *header;  /* its first line; owned; NULL: it is new */
    json_t *records; /* the other lines, an array; owned */
    uint64_t length; /* of what is whole: a last line without its end was cut off by a kill */
    const struct bhi_court *court;  /* from begin on */
    struct bhi_complaint complaint; /* why a verdict could not be recorded */
};

enum bhi_judge_journal_result { BHI_JOURNAL_OK, BHI_JOURNAL_BAD_INPUT, BHI_JOURNAL_ENVIRON };

/* Opens the folder, or makes it, and reads what is recorded. |resume|: it must have a judging,
 * otherwise it must have none. The caller closes it, also after a failure. */
enum bhi_judge_journal_result bhi_judge_journal_open(struct bhi_judge_journal *journal,
                                                     const char *path, bool resume,
                                                     struct bhi_complaint *complaint);
/* Gives the hidden seeds of a judging that goes on, which the caller frees. Returns false if they are
 * damaged or memory ran out. */
bool bhi_judge_journal_seeds(const struct bhi_judge_journal *journal, uint64_t **out_seeds,
                             size_t *out_count, struct bhi_complaint *complaint);
/* Call it when the reference has run. Records which judging it is; one that goes on must be of the same
 * task, inputs, expected outputs and device. */
enum bhi_judge_journal_result bhi_judge_journal_begin(struct bhi_judge_journal *journal,
                                                      const struct bhi_court *court,
                                                      const uint64_t *seeds, size_t seed_count,
                                                      struct bhi_complaint *complaint);
/* Fills in the judgement if the path, or the name of code in memory, has a record of the same
 * content. Any number of threads may. */
void bhi_judge_journal_find(const struct bhi_judge_journal *journal,
                            struct bhi_candidate *candidate);
/* Records a verdict, durably; one thread at a time. Returns false, with |complaint| of the journal, if that failed. */
bool bhi_judge_journal_note(struct bhi_judge_journal *journal,
                            const struct bhi_candidate *candidate);
void bhi_judge_journal_close(struct bhi_judge_journal *journal);

#endif
