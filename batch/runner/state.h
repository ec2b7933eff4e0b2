/* What the parts of the runner share: work, the lists that it stands in, what is bounded.
 *
 *              main thread        stagers, compilers        main thread     library's callback
 *   queue ---------------> to_stage -----------> streams[].staged --> in flight --+--> over
 *     |                     |   ^                                           READY |     ^ |
 *     | sealed before       v   | made                                            v     | |
 *     |                     kernel->parked, thirsty                          to_write   | |
 *     |                                                     finishers: written, sealed  | |
 *     +-----------------------------------------> to_place <---- journal's callback     | |
 *                                                     finishers: renamed  --------------+ v
 *                                                                     main thread: recorded, freed
 *
 * One lock guards all lists, counts and caches. No call that can wait is made with it held.
 */
#ifndef BHI_BATCH_RUNNER_STATE_H
#define BHI_BATCH_RUNNER_STATE_H

#include <pthread.h>

#include "base/list.h"
#include "batch/job/request.h"
#include "batch/queue/queue.h"
#include "batch/runner/options.h"
#include "request/eval_pieces.h"

enum {
    BHI_RUNNER_IN_FLIGHT = 4, /* submissions of a stream that have not ended */
    BHI_RUNNER_STAGED = 4,    /* jobs for each stream that are, or are being, made ready */
    BHI_RUNNER_PARKED = 64,   /* jobs that wait for a kernel to be compiled */
    BHI_RUNNER_FINISHING = 256,
    BHI_RUNNER_STAGERS = 2,
    BHI_RUNNER_COMPILERS = 2,
    BHI_RUNNER_FINISHERS = 6,
    BHI_RUNNER_BATCH = 16, /* jobs that a finisher handles at a time */
    BHI_RUNNER_KINDS = 16, /* of streams */
};

/* Where an attempt is; what counts which. */
enum bhi_work_stage {
    BHI_WORK_PREPARING, /* to_stage, or with a stager, or staged */
    BHI_WORK_PARKED,    /* waits for a kernel */
    BHI_WORK_IN_FLIGHT,
    BHI_WORK_FINISHING,
    BHI_WORK_OVER,
    BHI_WORK_STAGES
};

/* An attempt at a job. Belongs to the list that it is in, or to the thread that has taken it. */
struct bhi_work {
    struct bhi_list node; /* of a bhi_work_list */
    struct bhi_runner *runner;
    struct bhi_job *job;
    enum bhi_work_stage stage;
    struct bhi_job_request *request; /* owned; NULL: not parsed yet */
    struct bhi_kernel_entry *kernel; /* counted */
    bh_template *template_;          /* of an expression, in place of a kernel; a reference */
    struct bhi_pieces pieces;        /* what it is submitted as; owned */
    struct bhi_input_entry **inputs; /* owned; for each binding: counted, or NULL */
    bool holds_counted;              /* counted in runner->holders */
    uint64_t bytes;                  /* of runner->bytes */
    uint32_t stream;
    bool assigned; /* counted with it */
    bh_event *event;
    struct bhi_attempt attempt;
    bool record_failed;    /* the record could not be made */
    bool placement_failed; /* it is sealed, and an output cannot be put in its place */
};

struct bhi_work_list {
    struct bhi_list works;
    size_t count;
    uint64_t since_ns; /* of the finishers' lists: when the first one came */
};

struct bhi_runner_stream {
    bh_stream *stream;
    uint32_t assigned;  /* works that are meant for it and have not ended */
    uint32_t in_flight; /* of them, submitted */
    bool reset_needed;  /* it answered UNAVAILABLE: reset before the next submission */
    struct bhi_work_list staged;
};

/* What a job may say of its worker. */
struct bhi_runner_kind {
    char *device;      /* as the job has it; NULL: the batch's; owned */
    char selector[48]; /* of the device; empty: the default */
    bool limits_memory;
    uint64_t memory_limit;
    /* Of the device, asked when the first job needs it, and kept with the lock. */
    bool device_queried;
    uint64_t range; /* what it binds at once; 0: not known */
    uint32_t alignment;
};

struct bhi_runner {
    struct bhi_queue *queue;
    const struct bhi_runner_options *options;
    /* |options->streams| of each kind, one kind after the other; room for all kinds. A kind is made
     * when its first job comes, by who holds |making|; what it is and its streams do not change. */
    struct bhi_runner_stream *streams;
    struct bhi_runner_kind kinds[BHI_RUNNER_KINDS];
    uint32_t stream_count;
    pthread_mutex_t making; /* taken before |lock| */

    pthread_mutex_t lock;
    pthread_cond_t main_wake, stage_wake, compile_wake, finish_wake;
    struct bhi_work_list to_stage, to_compile, to_write, to_place, over;
    struct bhi_work_list thirsty; /* wait for memory */
    size_t at[BHI_WORK_STAGES];
    bool has_news;               /* since the main thread last looked */
    bool stopping;               /* nothing new is begun */
    bool quitting;               /* threads end */
    uint64_t bytes, bytes_limit; /* of buffers, those included that are kept for later */
    size_t holders;              /* works that have some of them */

    struct bhi_list kernels;   /* kernel_cache.c */
    struct bhi_list inputs;    /* input_cache.c */
    struct bhi_list templates; /* stage_eval.c */
    size_t kernel_count, input_count, template_count;
    uint64_t ticks; /* of both caches: who was used last */

    /* The main thread's. */
    struct bhi_work_list
        deferred;           /* found too little memory: one at a time when all others ended */
    bool solo_running;      /* one of them runs */
    uint32_t refusals;      /* by the environment, in a row */
    uint64_t refused_ns;    /* when the first of them was; CLOCK_MONOTONIC */
    uint64_t hold_until_ns; /* nothing is taken or given to a worker before; 0: at once */
    bh_status told;         /* why it waits, as last told; BH_OK: it was not */
    int told_errno;
    uint64_t told_ns;
    bool has_served;       /* a job has ended well */
    bool refused_for_good; /* the last refusal was for ever */
    bool interrupted;      /* by a signal */
    bool halted;           /* by too many failures: what no worker has had is as it was */
    uint64_t failed;       /* jobs, by themselves */
    struct bhi_complaint why;
    uint64_t stuck; /* jobs whose outputs are complete, and not in their places */

    pthread_t threads[BHI_RUNNER_STAGERS + BHI_RUNNER_COMPILERS + BHI_RUNNER_FINISHERS];
    size_t thread_count;
};

#endif
