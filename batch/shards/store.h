/* What the feeds of several shards say, in a database in a temporary file that nobody else sees and
 * that ends with the process: reports need it in other orders than that of the feeds, and it may be
 * larger than memory. */
#ifndef BHI_BATCH_SHARDS_STORE_H
#define BHI_BATCH_SHARDS_STORE_H

#include "batch/job/queued.h"
#include "batch/shards/line.h"

struct bhi_store;

struct bhi_store *bhi_store_open(struct bhi_complaint *complaint);
void bhi_store_close(struct bhi_store *store);
/* Opens and ends a group of changes: faster than one by one. */
bool bhi_store_begin(struct bhi_store *store);
bool bhi_store_end(struct bhi_store *store);
/* Names shard |shard| for the records. */
bool bhi_store_name(struct bhi_store *store, uint32_t shard, const char *name);
/* Forgets what is known of a shard: its feed begins anew. */
bool bhi_store_forget(struct bhi_store *store, uint32_t shard);
/* Takes a line about a job; |text| is the whole line. *out_fits: it does not contradict what came
 * before it. Returns false if the store failed. */
bool bhi_store_take(struct bhi_store *store, uint32_t shard, const struct bhi_feed_line *line,
                    const char *text, bool *out_fits);
/* Counts the shard's jobs by state. Of those that one stream has taken, one is RUNNING; the others
 * count as WAITING. */
bool bhi_store_count(struct bhi_store *store, uint32_t shard, uint64_t out_of[BHI_JOB_STATES]);

/* -- for reports ----------------------------------------------------------------------------- */

/* Gives each stream of each shard a row of the timeline, at most |most|: several may share one. */
bool bhi_store_make_rows(struct bhi_store *store, uint32_t most);
/* As bhi_queue_each_job and bhi_queue_each_attempt, shard by shard. */
bool bhi_store_each_job(struct bhi_store *store,
                        bool (*visit)(void *user, const struct bhi_job_record *record), void *user);
bool bhi_store_each_attempt(struct bhi_store *store,
                            bool (*visit)(void *user, const struct bhi_attempt_record *record),
                            void *user);
/* From the first attempt to the last end, as the machines' clocks have it; 0: there is none. */
struct bhi_store_span {
    uint64_t first_ns, last_ns, attempts;
};
bool bhi_store_span(struct bhi_store *store, struct bhi_store_span *out_span);
/* Does a job's line name a device? */
bool bhi_store_names_device(struct bhi_store *store, bool *out_names);
/* The same as bhi_store_each_job for the jobs called |id|. */
bool bhi_store_find_job(struct bhi_store *store, const char *id,
                        bool (*visit)(void *user, const struct bhi_job_record *record), void *user);
bool bhi_store_find_attempts(struct bhi_store *store, const char *id, const char *shard,
                             bool (*visit)(void *user, const struct bhi_attempt_record *record),
                             void *user);
/* Visits jobs that are in several shards; |where|: "0001 (done), 0003 (waiting)". */
bool bhi_store_each_twice(struct bhi_store *store,
                          bool (*visit)(void *user, const char *id, const char *where), void *user);

#endif
