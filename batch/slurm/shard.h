/* A shard's folder, STATE/shards/0000: what its task needs, and what the task leaves there.
 *
 *   jobs.jsonl   its jobs
 *   state/       of `bulkhead batch`
 *   log          what its tasks have printed
 *   ended        "ID ROUND ARRAY STATUS NODE": how the last task ended, if it could say so
 */
#ifndef BHI_BATCH_SLURM_SHARD_H
#define BHI_BATCH_SLURM_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "batch/job/queued.h"
#include "batch/slurm/array.h"
#include "batch/slurm/parse.h"

struct bhi_queue;

/* The path of a file in a shard's folder ("": the folder). The caller owns it; NULL if memory ran
 * out. */
char *bhi_slurm_shard_path(const char *state, uint32_t shard, const char *name);

/* Writes the script of the tasks, STATE/task.sh. |program| is this program on the nodes. The first
 * word that a task gets is its round; the others go to its batch. */
bool bhi_slurm_shard_write_script(const char *state, const char *id, const char *program,
                                  char *const *batch_options, struct bhi_complaint *complaint);
/* Writes |text| so that a shell reads it as one word. The caller owns it; NULL if out of memory. */
char *bhi_slurm_shard_quote(const char *text);

/* How a shard's last task ended, as it said itself. A new controller gives the job ids of an old
 * one again, so that |array| alone does not say which task it was. */
struct bhi_slurm_shard_ending {
    char id[BHI_ARRAY_ID + 1]; /* of the batch */
    uint64_t round;            /* in which it was submitted */
    uint64_t array;            /* the task's array; 0: no task has said anything */
    int status;                /* of `bulkhead batch` */
    char node[BHI_SLURM_NODE];
};
/* Reads STATE/shards/0000/ended. What cannot be read or is no such line counts as none. */
void bhi_slurm_shard_read_ending(const char *state, uint32_t shard,
                                 struct bhi_slurm_shard_ending *out_ending);
bool bhi_slurm_shard_parse_ending(const char *text, struct bhi_slurm_shard_ending *out_ending);

/* Has a task of any shard begun its batch in this state folder? Also true if it cannot be known. */
bool bhi_slurm_shard_any_has_run(const char *state);
/* Does the shard's log say that Slurm ended its last task because of its memory? Without control
 * groups the task's state does not: it is FAILED. */
bool bhi_slurm_shard_ran_out(const char *state, uint32_t shard);
bool bhi_slurm_shard_parse_log(const char *text);
/* The last line that a task has printed into the log at |path|, cleaned; "" if there is none.
 * Returns |out|. */
const char *bhi_slurm_log_end(const char *path, char *out, size_t capacity);

/* Opens a shard's journal as --dry-run does. Only after its task has ended. */
enum bhi_queue_result bhi_slurm_shard_open(const char *state, uint32_t shard,
                                           struct bhi_queue **out_queue,
                                           struct bhi_complaint *complaint);

/* What a shard's journal says. */
struct bhi_slurm_shard_look {
    bool read; /* false: there is no journal yet, it is in use, or it cannot be read */
    bool busy; /* a task uses it */
    struct bhi_queue_counts counts;
    char cut_off[200]; /* ids of jobs that the last task was running when it ended: "a, b"; or "" */
};
/* Reads it. Not while a task uses it. */
void bhi_slurm_shard_look(const char *state, uint32_t shard, struct bhi_slurm_shard_look *out_look);
/* Jobs that have ended for good. */
uint64_t bhi_slurm_shard_ended_jobs(const struct bhi_slurm_shard_look *look);

#endif
