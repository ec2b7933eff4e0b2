/* What the reports count in the journal, in one pass over the attempts. */
#ifndef BHI_BATCH_REPORT_TALLY_H
#define BHI_BATCH_REPORT_TALLY_H

#include "batch/report/report.h"

enum { BHI_TALLY_STATUSES = 64 }; /* every status is below */

struct bhi_tally {
    struct bhi_queue_counts counts;
    uint64_t attempts, guilty, cut_off; /* cut off by a kill of the batch */
    uint64_t refused;                   /* never given to a stream: no attempts */
    uint64_t of[BHI_TALLY_STATUSES];    /* attempts by verdict; BH_OK: READY */
    uint64_t unknown;                   /* of a status that this version does not know */
    uint64_t first_ns, last_ns;         /* CLOCK_REALTIME, of all attempts; 0: none */
};

/* Bad lines of |run| among them. False: the journal could not be read. */
bool bhi_tally_read(struct bhi_queue *queue, const struct bhi_report_run *run,
                    struct bhi_tally *out_tally);
/* As bhi_queue_each_job; bad lines of |run| first, as failed, number 0. */
bool bhi_tally_each_job(struct bhi_queue *queue, const struct bhi_report_run *run,
                        bool (*visit)(void *user, const struct bhi_job_record *record), void *user);

/* -- words that all reports use -----------------------------------------------------------------
 */

/* "DEADLINE"; "READY" of BH_OK, "-" of BH_PENDING. */
const char *bhi_tally_code(bh_status status);
/* What is told of |record|: its message, or through which job it failed. |out| is filled and
 * returned. */
const char *bhi_tally_message(const struct bhi_job_record *record, char *out, size_t capacity);
/* Its id; "line 3" of a bad line that has none. |out| has BHI_TALLY_ID bytes. */
enum { BHI_TALLY_ID = 32 };
const char *bhi_tally_id(const struct bhi_job_record *record, char out[BHI_TALLY_ID]);
/* Its kernel as its line has it: a file, or an expression; "" where that is not known. |out| is
 * filled and returned. */
enum { BHI_TALLY_KERNEL = 512 };
const char *bhi_tally_kernel(const struct bhi_job_record *record, char out[BHI_TALLY_KERNEL]);
/* The same for a narrow column: a file without its folders, "-" where it is not known. */
const char *bhi_tally_kernel_short(const struct bhi_job_record *record, char out[BHI_TALLY_KERNEL]);
/* Where it stands among failures: 0, its own fault; 1, it failed with another; 2, cancelled. */
enum { BHI_TALLY_RANKS = 3 };
int bhi_tally_rank(const struct bhi_job_record *record);
/* It ended, and not well. */
bool bhi_tally_is_failure(enum bhi_job_state state);

#endif
