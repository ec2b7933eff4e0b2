/* What the journal keeps: a note of each change, and the batch that they belong to. */
#ifndef BHI_BATCH_JOURNAL_NOTE_H
#define BHI_BATCH_JOURNAL_NOTE_H

#include "base/list.h"
#include "batch/job/queued.h"
#include "batch/journal/used.h"
#include "formats/complaint.h"

/* The batch of a state folder. */
struct bhi_journal_batch {
    char id[33];     /* hexadecimal */
    char *cwd;       /* owned */
    char *jobs_path; /* owned; as it was given in |cwd|; NULL: not known, or the batch begins now */
    uint64_t jobs;   /* number of jobs */
};

/* Makes a batch that begins now in the current folder, without jobs. On failure nothing is
 * owned. */
bool bhi_journal_batch_make(struct bhi_journal_batch *out_batch, struct bhi_complaint *complaint);

enum bhi_note_kind {
    BHI_NOTE_STARTED, /* attempt, stream, times.started_ns */
    BHI_NOTE_SEALED,  /* attempt, outputs, used, then, user */
    BHI_NOTE_ENDED,   /* state and counters; the attempt if there is one */
    BHI_NOTE_STATE,   /* state, origin: a consequence of another job's end */
};

struct bhi_note {
    struct bhi_list node; /* in the list of notes that wait to be written */
    enum bhi_note_kind kind;
    enum bhi_job_state state;
    uint64_t job;    /* number */
    uint64_t origin; /* number; 0: none */
    uint32_t tried;  /* number of the attempt; 0: none */
    uint32_t attempts, guilty, victim, stream;
    bool sealed_before;          /* ENDED: an earlier process has recorded the attempt */
    uint64_t time_ns;            /* CLOCK_REALTIME, when it was noted */
    struct bhi_attempt *attempt; /* owned; SEALED, ENDED */
    const char *outputs;         /* owned; SEALED */
    struct bhi_used used;        /* owned; SEALED */
    void (*then)(void *user, bool durable);
    void *user;
};

#endif
