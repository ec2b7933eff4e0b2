/* STATE/array.json: what has been submitted to Slurm for a batch. It is written before each
 * submission and after it, whole each time, so that a killed submitter is followed by one that
 * knows what to look for.
 *
 *   {"format": 1, "id": "0123…", "created_ns": …, "cwd": "/…", "chdir": "/…", "jobs": "jobs.jsonl",
 *    "jobs_hash": "…", "shape_hash": "…", "total": 1000, "shards": 10, "sizes": [100, …],
 *    "program": "/usr/bin/bulkhead", "batch_options": ["--streams=2", …], "sbatch_options": […],
 *    "rounds": [{"round": 0, "job": 17, "shards": [0, 1, …], "why": "first", "submitted_ns": …},
 *               {"round": 1, "job": 29, "shards": [3], "why": "NODE_FAIL on n2", …}]}
 *
 * |job| is 0 from before sbatch until its answer is recorded. Each array has the comment
 * "bulkhead:ID:ROUND". */
#ifndef BHI_BATCH_SLURM_ARRAY_H
#define BHI_BATCH_SLURM_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

#define BHI_ARRAY_FILE "array.json" /* in the state folder of the batch */

enum {
    BHI_ARRAY_FORMAT = 1,
    BHI_ARRAY_SHARDS = 9999,   /* the most: a shard's folder has four digits */
    BHI_ARRAY_ROUNDS = 100000, /* the most that are read */
    BHI_ARRAY_ID = 32,         /* hexadecimal digits */
    BHI_ARRAY_COMMENT = 64,    /* bytes that a comment needs at most */
    BHI_ARRAY_BYTES = 64 << 20 /* the most bytes of the file */
};

struct bhi_slurm_round {
    uint64_t job; /* Slurm's id of the array; 0: not known */
    uint64_t submitted_ns;
    uint32_t *shards; /* owned */
    uint32_t count;
    char why[160]; /* "first", or what had become of these shards */
};

struct bhi_slurm_array {
    char id[BHI_ARRAY_ID + 1];
    uint64_t created_ns, total;
    char *cwd, *chdir, *jobs, *program; /* owned */
    char jobs_hash[65], shape_hash[65]; /* of the jobs' lines; of their ids and dependencies */
    uint32_t shards;
    uint64_t *sizes;                        /* jobs in each shard; owned */
    char **batch_options, **sbatch_options; /* owned, each one too; NULL after the last */
    struct bhi_slurm_round *rounds;         /* owned */
    size_t round_count, round_capacity;
};

/* Fills in a random id and the time. */
bool bhi_array_init(struct bhi_slurm_array *array, struct bhi_complaint *complaint);
void bhi_array_free(struct bhi_slurm_array *array);
/* Can |text| be written into it? That takes UTF-8. */
bool bhi_array_takes(const char *text);
/* Writes STATE/array.json. */
bool bhi_array_save(const struct bhi_slurm_array *array, const char *state,
                    struct bhi_complaint *complaint);
enum bhi_array_result { BHI_ARRAY_LOADED, BHI_ARRAY_NONE, BHI_ARRAY_REFUSED };
/* Reads it. All of it is checked; on failure nothing is owned. */
enum bhi_array_result bhi_array_load(struct bhi_slurm_array *out_array, const char *state,
                                     struct bhi_complaint *complaint);
/* Adds a round of |count| shards (copied). Returns NULL if memory ran out. */
struct bhi_slurm_round *bhi_array_add_round(struct bhi_slurm_array *array, const uint32_t *shards,
                                            uint32_t count, const char *why);
/* "bulkhead:ID:ROUND". */
void bhi_array_comment(const struct bhi_slurm_array *array, size_t round,
                       char out[BHI_ARRAY_COMMENT]);
/* Is |comment| of |length| bytes one of this batch? Then *out_round is its round. */
bool bhi_array_owns(const struct bhi_slurm_array *array, const char *comment, size_t length,
                    size_t *out_round);
/* The shards of a round as sbatch takes them: "0-4,7". The caller owns the text; NULL if memory ran
 * out. */
char *bhi_array_indexes(const struct bhi_slurm_round *round);

#endif
