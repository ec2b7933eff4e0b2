/* What becomes of a batch that several processes run, on several machines: read from their state
 * folders alone, while they run and later, from any machine that sees the folders.
 *
 *   STATE/shards/0000/jobs.jsonl    the jobs of a shard
 *   STATE/shards/0000/state/        its state folder; the feed in it is what is read
 *   STATE/shards/0000/log           what its process has printed
 *   STATE/cancel                    ends all shards, when it exists (batch/runner/cancel.h)
 *   STATE/quarantine/               shared by the shards (batch/runner/quarantine.h)
 *
 * The state folder of a single batch is read as one shard, whose name is "0000".
 */
#ifndef BHI_BATCH_SHARDS_SHARDS_H
#define BHI_BATCH_SHARDS_SHARDS_H

#include "batch/report/report.h"
#include "batch/shards/reader.h"
#include "batch/shards/store.h"

enum {
    BHI_SHARDS_MOST = 10000, /* shards of a batch */
    BHI_SHARD_NAME = 16,
    BHI_SHARDS_WHO = 256, /* bytes of bhi_shards_cancelled_by */
    BHI_SHARD_SKEW_S = 2, /* clocks that differ by less are the same */
};

enum bhi_shard_state {
    BHI_SHARD_WAITS,   /* it has no feed yet */
    BHI_SHARD_RUNNING, /* its process has not ended in order: it runs, or was killed */
    BHI_SHARD_ENDED,
};

struct bhi_shard {
    char name[BHI_SHARD_NAME];
    enum bhi_shard_state state;
    char host[BHI_HOST_NAME];        /* of the process that had it last; "": none yet */
    char batch[33];                  /* id of its own batch */
    uint64_t pid, began_ns, last_ns; /* by the clock of that machine */
    uint64_t jobs_mtime_ns;          /* when the submitter wrote its jobs; 0: unknown */
    int64_t skew_ns; /* by how much that clock is ahead of the file system's; 0: not noticeably */
    uint64_t of[BHI_JOB_STATES], total;
    uint64_t damaged, first_damaged; /* lines of the feed */
    bool uncounted;                  /* |of| and |total| are those of an earlier time */
    /* For bhi_shards_follow(): jobs in the feed, and their ends; when the first of its reads was,
     * and how many had ended by then; when something was new last. */
    uint64_t jobs, ends, first_ns, first_ends, news_ns;
    bool bare;  /* it has a state without a feed: it begins, or an earlier version made it */
    bool later; /* a later version wrote the feed: some of it may be missing here */
    struct bhi_reader reader;
};

struct bhi_shards {
    char *path;  /* owned; as given */
    bool single; /* the state of one batch */
    int folder;
    struct bhi_shard *shards; /* owned; by name */
    size_t count;
    struct bhi_store *store;
    bool cancelled;
};

#define BHI_SHARDS_CLOSED {.folder = -1}

/* Opens the folder and finds the shards in it. Nothing in it is changed, ever. */
bool bhi_shards_open(const char *path, struct bhi_shards *out_shards,
                     struct bhi_complaint *complaint);
void bhi_shards_close(struct bhi_shards *shards);
/* Reads what is new, at most some MiB of each shard. *out_more: there is more already. Returns
 * false if the records cannot be kept (a full disk). */
bool bhi_shards_poll(struct bhi_shards *shards, bool *out_more, struct bhi_complaint *complaint);
/* Reads what is new of one shard, at most some MiB, and does not count. So the report at the end
 * need not read everything. Returns how long it is until the shard need be looked at again: less
 * than |most_ns| only if it is nearly through, by how fast its jobs have ended so far. If nothing
 * comes for a while, the pause grows again. |now_ns|: CLOCK_MONOTONIC. */
uint64_t bhi_shards_follow(struct bhi_shards *shards, size_t number, uint64_t now_ns,
                           uint64_t most_ns);
/* Polls until all that is there has been read, or a signal asks for the end. */
bool bhi_shards_read(struct bhi_shards *shards, struct bhi_complaint *complaint);
void bhi_shards_counts(const struct bhi_shards *shards, struct bhi_queue_counts *out_counts);
/* Have all shards ended? */
bool bhi_shards_ended(const struct bhi_shards *shards);
const char *bhi_shard_state_name(enum bhi_shard_state state);

/* Makes STATE/cancel, whole; the batches that look for it end in order. */
bool bhi_shards_cancel(const struct bhi_shards *shards, struct bhi_complaint *complaint);
/* The same in an open folder at |path| that has no shards yet. */
bool bhi_shards_cancel_folder(int folder, const char *path, struct bhi_complaint *complaint);
/* Is there a file `cancel` in |folder|? Then |out| says who made it, where and when: "by ann on n1
 * at 2026-01-31 12:34:56 UTC". */
bool bhi_shards_cancelled_by(int folder, char out[BHI_SHARDS_WHO]);

#endif
