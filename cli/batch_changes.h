/* Files that finished jobs have read, and that are others now: the results are stale. */
#ifndef BHI_CLI_BATCH_CHANGES_H
#define BHI_CLI_BATCH_CHANGES_H

#include "batch/graph/names.h"
#include "batch/queue/queue.h"

struct bhi_batch_change {
    uint64_t file; /* its number in the queue */
    char *path;    /* owned; as the batch's folder sees it */
    int error;     /* errno: it cannot be read; 0: its content differs */
    uint64_t jobs; /* that have read it, are done, and do not run again anyway */
    char *example; /* owned; the id of one of them */
};

struct bhi_batch_changes {
    struct bhi_batch_change *list; /* owned */
    size_t count, capacity;
    char **ids; /* owned, each too: of all these jobs */
    size_t id_count, id_capacity;
};

/* Compares each file with its record. Files in |made| (whole paths) are left out: jobs of the batch
 * make them. A file that is missing has not changed. Reads the files whose times differ. Returns an
 * exit status; the reason is printed. */
int bhi_batch_changes_find(struct bhi_queue *queue, const struct bhi_names *made,
                           struct bhi_batch_changes *out_changes);
/* Writes "k.comp has changed since 4,000 jobs read it (for example 7)". */
enum { BHI_BATCH_CHANGE_TEXT = 1200 };
const char *bhi_batch_change_text(const struct bhi_batch_change *change,
                                  char out[BHI_BATCH_CHANGE_TEXT]);
/* Prints what has changed, and what becomes of it. Returns an exit status: |redoes| and |keeps| are
 * the user's decision; without one, a change is refused. */
int bhi_batch_changes_judge(const struct bhi_batch_changes *changes, bool redoes, bool keeps);
void bhi_batch_changes_free(struct bhi_batch_changes *changes);

#endif
