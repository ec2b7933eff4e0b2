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
    BHI_JOB_ID = 255,       /* the most bytes of an id; the fewest are 1; no control characters */
    BHI_JOB_TEXT = 1 << 20, /* the most bytes of a line */
    BHI_JOB_DEPENDENCIES = 4096,
    BHI_JOB_RETRIES = 1000,     /* the highest number */
    BHI_JOB_PRIORITY = 1000000, /* from minus this to this */
};

/* The states of a job:
 *
 *              dependencies done            taken             output complete on disk
 *   SUBMITTED ------------------> WAITING <-------> RUNNING ---------> RUNNING, sealed --> DONE
 *       |                            |      retried    |                      |
 *       | a dependency failed        |                 v                      v
 *       +--------------------------> +----> FAILED, QUARANTINED, CANCELLED (a sealed one: FAILED)
 *
 * DONE, FAILED, QUARANTINED and CANCELLED are ends; --resume runs a CANCELLED job again.
 * The numbers are in databases, so they must never change. */
enum bhi_job_state {
    BHI_JOB_SUBMITTED = 0,   /* a dependency is not done */
    BHI_JOB_WAITING = 1,     /* may run */
    BHI_JOB_RUNNING = 2,     /* taken */
    BHI_JOB_DONE = 3,        /* its outputs are in place */
    BHI_JOB_FAILED = 4,      /* bad input, outputs not possible, or a dependency failed (origin) */
    BHI_JOB_QUARANTINED = 5, /* it was guilty more often than its retries allow */
    BHI_JOB_CANCELLED = 6,   /* by a signal */
    BHI_JOB_STATES
};
/* Returns "submitted", "waiting" and so on; never NULL. */
const char *bhi_job_state_name(enum bhi_job_state state);
bool bhi_job_state_is_end(enum bhi_job_state state);

/* A job before it is added to the queue. Strings are borrowed unless the comment says owned. */
struct bhi_job_spec {
    char *text;        /* owned: the line's object in canonical form (sorted keys, compact): lines
                        * that mean the same have the same text */
    char *id;          /* owned */
    char **depends_on; /* owned, each string too; distinct, without its own id */
    size_t depends_count;
    char **reads, **writes; /* owned, each too: inputs (without kernel and -I), outputs */
    char **includes;        /* owned, each string too: paths of -I, as written */
    size_t read_count, write_count, include_count;
    char *kernel;     /* owned: path as written; NULL: the job computes an expression */
    size_t line;      /* line number in the file, from 1 */
    int32_t priority; /* higher runs first; default 0 */
    int32_t retries;  /* -1: the batch's default */
};

/* Parses one line (without its end). Refuses everything that `bulkhead run` refuses without opening
 * a file; the complaint names the key: "\"deadline\": 5x is no duration". Also refuses standard
 * streams ("-") and unknown keys (and suggests the nearest known one). On failure nothing is owned.
 * The current folder does not matter. */
bool bhi_job_parse(const char *line, size_t length, struct bhi_job_spec *out_spec,
                   struct bhi_complaint *complaint);
void bhi_job_spec_free(struct bhi_job_spec *spec);

#endif
