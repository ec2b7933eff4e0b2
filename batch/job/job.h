/* One job of a batch: a line of JOBS.jsonl, checked.
 *
 * A job is kept as its text; what `bulkhead run` would parse of it (bindings, constants) is parsed
 * again when its turn comes (request.h), so that a million jobs are a million short texts.
 */
#ifndef BHI_BATCH_JOB_JOB_H
#define BHI_BATCH_JOB_JOB_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

enum {
    BHI_JOB_ID = 255,       /* bytes at most, and at least 1; no control characters */
    BHI_JOB_TEXT = 1 << 20, /* bytes of a line at most */
    BHI_JOB_DEPENDENCIES = 4096,
    BHI_JOB_RETRIES = 1000,     /* at most */
    BHI_JOB_PRIORITY = 1000000, /* -this to this */
};

/* What becomes of a job:
 *
 *              dependencies done            taken             output complete on disk
 *   SUBMITTED ------------------> WAITING <-------> RUNNING ---------> RUNNING, sealed --> DONE
 *       |                            |      retried    |                      |
 *       | a dependency failed        |                 v                      v
 *       +--------------------------> +----> FAILED, QUARANTINED, CANCELLED (a sealed one: FAILED)
 *
 * DONE, FAILED, QUARANTINED and CANCELLED are ends; --resume takes a CANCELLED one up again.
 * The numbers are in the database: fixed for ever. */
enum bhi_job_state {
    BHI_JOB_SUBMITTED = 0,   /* depends on jobs that are not done */
    BHI_JOB_WAITING = 1,     /* may run */
    BHI_JOB_RUNNING = 2,     /* taken */
    BHI_JOB_DONE = 3,        /* its outputs are in place */
    BHI_JOB_FAILED = 4,      /* bad input, no outputs possible, or a dependency failed (origin) */
    BHI_JOB_QUARANTINED = 5, /* it was guilty more often than its retries allow */
    BHI_JOB_CANCELLED = 6,   /* by a signal */
    BHI_JOB_STATES
};
/* "submitted", "waiting", …; never NULL. */
const char *bhi_job_state_name(enum bhi_job_state state);
bool bhi_job_state_is_end(enum bhi_job_state state);

/* What the queue knows of a job before it is added. Borrowed strings unless said otherwise. */
struct bhi_job_spec {
    char *text;        /* owned: the line's object, canonical (sorted keys, compact): two lines that
                          mean the same have the same text */
    char *id;          /* owned */
    char **depends_on; /* owned, each string too; distinct, none is its own id */
    size_t depends_count;
    char **reads, **writes; /* owned, each too: paths of inputs (kernel and -I not among them) and
                               outputs as written in the line */
    char **includes;        /* owned, each too: of -I, as written */
    size_t read_count, write_count, include_count;
    char *kernel;     /* owned: path as written; NULL: it computes an expression */
    size_t line;      /* in the file, from 1 */
    int32_t priority; /* higher first; default 0 */
    int32_t retries;  /* -1: the batch's default */
};

/* Parses one line (without its line end). Everything that `bulkhead run` can refuse without
 * touching a file is refused here; the complaint names the key: "\"deadline\": 5x is no duration".
 * Standard streams ("-") are refused, unknown keys are refused (with the nearest known one). On
 * failure nothing is owned. Does not depend on the current folder. */
bool bhi_job_parse(const char *line, size_t length, struct bhi_job_spec *out_spec,
                   struct bhi_complaint *complaint);
void bhi_job_spec_free(struct bhi_job_spec *spec);

#endif
