/* What the reports count in the journal, in one pass over the attempts. */
#ifndef BHI_BATCH_REPORT_TALLY_H
#define BHI_BATCH_REPORT_TALLY_H

#include "batch/report/report.h"

enum {
    BHI_TALLY_STATUSES = 64, /* every status is smaller */
    BHI_TALLY_DEVICES = 64,
};

struct bhi_tally {
    struct bhi_queue_counts counts;
    uint64_t failures;                  /* jobs and bad lines that bhi_tally_is_failure() */
    uint64_t attempts, guilty, cut_off; /* cut off by a kill of the batch */
    uint64_t refused;                   /* never given to a stream; not in |attempts| */
    uint64_t of[BHI_TALLY_STATUSES];    /* attempts by verdict; BH_OK: READY */
    uint64_t unknown;                   /* attempts whose status this version does not know */
    uint64_t first_ns, last_ns;         /* CLOCK_REALTIME, of all attempts; 0: none */
    struct {
        char selector[48];
        uint64_t attempts;
    } devices[BHI_TALLY_DEVICES]; /* those that attempts ran on, as they came */
    size_t device_count;
    bool shows_devices; /* there are several, or the command or a job names one */
};

/* Counts all attempts, with the bad lines of |run|. Returns false if the journal could not be
 * read. */
bool bhi_tally_read(struct bhi_queue *queue, const struct bhi_report_run *run,
                    struct bhi_tally *out_tally);
/* As bhi_queue_each_job, but first the bad lines of |run|, as failed jobs with number 0. */
bool bhi_tally_each_job(struct bhi_queue *queue, const struct bhi_report_run *run,
                        bool (*visit)(void *user, const struct bhi_job_record *record), void *user);

/* As bhi_queue_each_attempt, of the queue or of the run's source. */
bool bhi_tally_each_attempt(struct bhi_queue *queue, const struct bhi_report_run *run,
                            bool (*visit)(void *user, const struct bhi_attempt_record *record),
                            void *user);
/* The id of the batch, likewise. */
const char *bhi_tally_batch(const struct bhi_queue *queue, const struct bhi_report_run *run);

/* -- words that all reports use -------------------------------------------------------------- */

/* Returns for example "DEADLINE"; "READY" for BH_OK, "-" for BH_PENDING. */
const char *bhi_tally_code(bh_status status);
/* Writes the message of |record|, or which job made it fail. Returns |out|. */
const char *bhi_tally_message(const struct bhi_job_record *record, char *out, size_t capacity);
/* Writes its id; "line 3" for a bad line without one. |out| has BHI_TALLY_ID bytes. */
enum { BHI_TALLY_ID = 32 };
const char *bhi_tally_id(const struct bhi_job_record *record, char out[BHI_TALLY_ID]);
/* Writes the kernel as in the job's line: a file or an expression; "" if unknown. Returns |out|. */
enum { BHI_TALLY_KERNEL = 512 };
const char *bhi_tally_kernel(const struct bhi_job_record *record, char out[BHI_TALLY_KERNEL]);
/* The same for a narrow column: a file without its folders, and its entry point if the line names one;
 * "-" if unknown. */
const char *bhi_tally_kernel_short(const struct bhi_job_record *record, char out[BHI_TALLY_KERNEL]);
/* Returns the device of the last attempt; "-": not known. */
const char *bhi_tally_device(const struct bhi_job_record *record);
/* Returns the machine of the last attempt, or the shard; "-": not known. */
const char *bhi_tally_host(const struct bhi_job_record *record);
const char *bhi_tally_shard(const struct bhi_job_record *record);
/* Writes "75 s ahead", or "-" if the shard's clock is like the file system's. Returns |out|. */
enum { BHI_TALLY_CLOCK = 48 };
const char *bhi_tally_clock(const struct bhi_report_shard *shard, char out[BHI_TALLY_CLOCK]);
/* Writes "lavapipe:0 8, lavapipe:1 7", the attempts on each device, as many as fit. Returns
 * |out|. */
const char *bhi_tally_devices(const struct bhi_tally *tally, char *out, size_t capacity);
/* Returns the rank of a failure: 0, its own fault; 1, it failed because of another; 2,
 * cancelled. */
enum { BHI_TALLY_RANKS = 3 };
int bhi_tally_rank(const struct bhi_job_record *record);
/* Is |state| an end other than DONE? */
bool bhi_tally_is_failure(enum bhi_job_state state);

#endif
