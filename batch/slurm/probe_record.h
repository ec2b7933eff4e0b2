/* STATE/probe.json: the probe that has been submitted for a batch and has not answered yet. It is
 * written before sbatch and after it, whole each time, so that a killed submitter is followed by
 * one that waits for the same probe; it is removed when nothing more is expected of the probe.
 *
 *   {"format": 1, "id": "0123…", "nonce": "…", "asks": "…", "job": 17, "submitted_ns": …}
 *
 * |job| is 0 from before sbatch until its answer is recorded. The probe has the comment
 * "bulkhead:ID:probe:NONCE". */
#ifndef BHI_BATCH_SLURM_PROBE_RECORD_H
#define BHI_BATCH_SLURM_PROBE_RECORD_H

#include "batch/slurm/array.h"

enum {
    BHI_PROBE_FORMAT = 1,
    BHI_PROBE_NONCE = 16, /* hexadecimal digits */
    BHI_PROBE_COMMENT = BHI_ARRAY_COMMENT + BHI_PROBE_NONCE + 8
};
#define BHI_PROBE_FILE "probe.json"

struct bhi_probe_record {
    char id[BHI_ARRAY_ID + 1];       /* of the batch */
    char nonce[BHI_PROBE_NONCE + 1]; /* which probe: only its own answer counts */
    char asks[65];                   /* hash of what it looks for, and of sbatch's options */
    uint64_t job;                    /* Slurm's id; 0: not known */
    uint64_t submitted_ns;
};

bool bhi_probe_record_save(const struct bhi_probe_record *record, const char *state,
                           struct bhi_complaint *complaint);
/* Returns false if there is none that can be read; then *out_record is zero. */
bool bhi_probe_record_load(struct bhi_probe_record *out_record, const char *state);
void bhi_probe_record_remove(const char *state);
/* "bulkhead:ID:probe:NONCE". */
void bhi_probe_record_comment(const struct bhi_probe_record *record, char out[BHI_PROBE_COMMENT]);

#endif
