/* Submits the shards of a batch as job arrays, follows them, and submits again what was lost. */
#ifndef BHI_BATCH_SLURM_WATCH_H
#define BHI_BATCH_SLURM_WATCH_H

#include "batch/slurm/client.h"
#include "batch/slurm/decide.h"

/* How often the files of the tasks are looked at while nothing is near its end. */
#define BHI_WATCH_TICK_NS UINT64_C(200000000)
/* How long a network file system may take to show a file that another machine has made. */
#define BHI_WATCH_SETTLES_NS UINT64_C(5000000000)

/* A shard, as its submitter sees it:
 *
 *   DUE --sbatch--> SUBMITTED --> ENDED
 *    ^                 |  \
 *    +-----again-------+   +----> STUCK */
enum bhi_watch_state { BHI_WATCH_DUE, BHI_WATCH_SUBMITTED, BHI_WATCH_ENDED, BHI_WATCH_STUCK };

struct bhi_watch_shard {
    enum bhi_watch_state state;
    uint64_t due_ns; /* CLOCK_MONOTONIC; DUE: not before that */
    size_t round;    /* SUBMITTED: the last round that has it */
    uint64_t before; /* jobs that had ended when it was submitted; UINT64_MAX: not known */
    uint32_t fruitless;
    bool resumed;   /* an earlier submitter saw it last: it is not stuck, but again */
    bool cancelled; /* STUCK: by --cancel */
    bool again;     /* its task gets --retry-failed */
    enum bhi_slurm_state slurm;
    uint32_t missed;  /* looks in a row that did not find it */
    uint64_t lost_ns; /* since when its task is known to have ended; 0: it is not */
    bool running;
    bool near;  /* it is nearly through, by what is read of its feed */
    int status; /* ENDED */
    char name[32], node[BHI_SLURM_NODE];
    char why[300]; /* DUE, STUCK */
};

struct bhi_watch_progress {
    uint32_t shards, ended, stuck, cancelled, running, pending, due;
    const char *reason; /* why one is pending; "" */
};

struct bhi_watch {
    const char *state; /* the folder; absolute */
    struct bhi_slurm_array *array;
    struct bhi_slurm_client client;
    uint64_t poll_ns; /* between two looks at Slurm's queue */
    bool retry_failed;
    const bool *redo; /* for each shard whether it goes on although it has ended; NULL: none does */
    bool was_cancelled; /* when the earlier submitter had it, or after that */
    /* Called with a line for people when something has happened, and from time to time. */
    void (*tell)(void *user, const char *line);
    void (*progress)(void *user, const struct bhi_watch_progress *progress);
    /* Reads what is new in the feed of |shard|, and returns after how long that shard is looked at
     * again: |most_ns|, or less if it is nearly through. NULL: nothing is read. */
    uint64_t (*follow)(void *user, uint32_t shard, uint64_t most_ns);
    void *user;

    struct bhi_watch_shard *shards; /* owned */
    char reason[BHI_SLURM_REASON];
    size_t looked;     /* the next shard whose ending is read */
    size_t followed;   /* the next shard whose feed is read */
    uint64_t files_ns; /* when the next tick is */
    uint64_t bad_ns;   /* since when squeue has failed for good each time; 0: it does not */
    uint64_t told_ns;  /* when it was said that it fails */
    uint64_t tried_ns; /* when it was tried whether the folder can be written */
    char full[300];    /* what came of it: why it cannot; "" */
    bool unsure;       /* INTERRUPTED: Slurm may have an array that is not recorded */
};

enum bhi_watch_result {
    BHI_WATCH_DONE,        /* each shard has ended or is stuck */
    BHI_WATCH_REFUSED,     /* the first array was refused: nothing is submitted */
    BHI_WATCH_DOWN,        /* the controller was not reached, and no shard is submitted */
    BHI_WATCH_INTERRUPTED, /* by a signal; what is submitted goes on */
    BHI_WATCH_FAILED       /* no memory, no writing into the state folder, or no squeue any more */
};

/* |watch| has all fields up to |user|. With |is_resumed| the rounds in the array are continued.
 * Returns when nothing is left to wait for. The complaint is set unless that is DONE. */
enum bhi_watch_result bhi_watch_run(struct bhi_watch *watch, bool is_resumed,
                                    struct bhi_complaint *complaint);
/* How many shards are stuck, and how many of them because of --cancel. */
uint32_t bhi_watch_stuck(const struct bhi_watch *watch, uint32_t *out_cancelled);
/* Is there nothing more to wait for? */
bool bhi_watch_is_over(const struct bhi_watch *watch);
void bhi_watch_fini(struct bhi_watch *watch);

#endif
