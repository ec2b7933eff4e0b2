/* What Slurm's programs print. All of it is input from outside: a line that cannot be read is
 * refused, and nothing of it is used. No function allocates, and none depends on the locale. */
#ifndef BHI_BATCH_SLURM_PARSE_H
#define BHI_BATCH_SLURM_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BHI_SLURM_NODE = 64, BHI_SLURM_REASON = 128 };

/* What a task's state means for its shard. The names are Slurm's (squeue %T, sacct State). */
#define BHI_SLURM_STATES(STATE)                                                                    \
    STATE("PENDING", PENDING)                                                                      \
    STATE("REQUEUED", PENDING)                                                                     \
    STATE("REQUEUE_FED", PENDING)                                                                  \
    STATE("REQUEUE_HOLD", PENDING)                                                                 \
    STATE("SPECIAL_EXIT", PENDING)                                                                 \
    STATE("RESV_DEL_HOLD", PENDING)                                                                \
    STATE("REVOKED", PENDING)                                                                      \
    STATE("CONFIGURING", RUNNING)                                                                  \
    STATE("RUNNING", RUNNING)                                                                      \
    STATE("COMPLETING", RUNNING)                                                                   \
    STATE("RESIZING", RUNNING)                                                                     \
    STATE("SIGNALING", RUNNING)                                                                    \
    STATE("STAGE_OUT", RUNNING)                                                                    \
    STATE("STOPPED", RUNNING)                                                                      \
    STATE("SUSPENDED", RUNNING)                                                                    \
    STATE("COMPLETED", ENDED)                                                                      \
    STATE("FAILED", ENDED)                                                                         \
    STATE("NODE_FAIL", VICTIM)                                                                     \
    STATE("BOOT_FAIL", VICTIM)                                                                     \
    STATE("PREEMPTED", VICTIM)                                                                     \
    STATE("LAUNCH_FAILED", VICTIM)                                                                 \
    STATE("RECONFIG_FAIL", VICTIM)                                                                 \
    STATE("TIMEOUT", TIME)                                                                         \
    STATE("OUT_OF_MEMORY", MEMORY)                                                                 \
    STATE("CANCELLED", CANCELLED)                                                                  \
    STATE("DEADLINE", CANCELLED)

enum bhi_slurm_state {
    BHI_SLURM_UNKNOWN, /* a name that this version does not know, or none yet: wait */
    BHI_SLURM_PENDING,
    BHI_SLURM_RUNNING,
    BHI_SLURM_ENDED,     /* by itself: what it left behind says how */
    BHI_SLURM_VICTIM,    /* Slurm ended it, and not because of what it did */
    BHI_SLURM_TIME,      /* its time limit passed */
    BHI_SLURM_MEMORY,    /* it used more memory than it had been given */
    BHI_SLURM_CANCELLED, /* somebody cancelled it */
    BHI_SLURM_GONE       /* Slurm does not know it any more */
};

/* A task of a job array, as a line of squeue says it. */
struct bhi_slurm_task {
    uint64_t array; /* the array's job id */
    uint32_t index; /* in the array */
    enum bhi_slurm_state state;
    char name[32];                 /* of the state, as Slurm says it */
    char node[BHI_SLURM_NODE];     /* where it runs or ran; may be "" */
    char reason[BHI_SLURM_REASON]; /* why it is pending; may be "" */
    const char *comment;           /* inside the line */
    size_t comment_length;
};

/* The format of squeue that bhi_slurm_parse_task reads. The reason is last: it is free text. */
#define BHI_SLURM_FORMAT "%F|%K|%T|%N|%k|%r"

/* Parses what `sbatch --version` prints: "slurm 23.11.4", "slurm-wlm 22.05.8". */
bool bhi_slurm_parse_version(const char *text, unsigned *out_major, unsigned *out_minor);
/* Parses what `sbatch --parsable` prints: "123\n" or "123;cluster\n". */
bool bhi_slurm_parse_job(const char *text, uint64_t *out_job);
/* Finds in what `scontrol show config` prints how many tasks an array may have. */
bool bhi_slurm_parse_limit(const char *text, uint64_t *out_tasks);
/* Parses a line of |length| bytes, without its end. A job that is not in an array has the index
 * UINT32_MAX. |out_task| points into |line|. */
bool bhi_slurm_parse_task(const char *line, size_t length, struct bhi_slurm_task *out_task);
/* Finds the state of the name at the beginning of |text|: "CANCELLED by 0" is CANCELLED. */
enum bhi_slurm_state bhi_slurm_parse_state(const char *text, size_t length);

enum bhi_slurm_failure {
    BHI_SLURM_REFUSED,   /* the controller has refused it: again would be the same */
    BHI_SLURM_UNREACHED, /* the controller was not reached, or asks to try later */
    BHI_SLURM_UNSURE     /* no answer came: it may have been done */
};
/* What an error message of sbatch, squeue or scancel means. */
enum bhi_slurm_failure bhi_slurm_judge_error(const char *message);

#endif
