/* What the parts of the runner share: works, their lists, and limits.
 *
 *              main thread        stagers, compilers        main thread        main thread
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
#include "request/eval_plan.h"

enum {
    BHI_RUNNER_IN_FLIGHT = 4, /* submissions of a stream that have not ended */
    BHI_RUNNER_STAGED = 4,    /* for each stream: jobs that are staged or being staged */
    BHI_RUNNER_PARKED = 64,   /* jobs that wait for a kernel to be compiled */
    BHI_RUNNER_FINISHING = 256,
    BHI_RUNNER_STAGERS = 2,
    BHI_RUNNER_COMPILERS = 2,
    BHI_RUNNER_FINISHERS = 6,
    BHI_RUNNER_BATCH = 16, /* works that a finisher handles at a time */
    BHI_RUNNER_KINDS = 16, /* kinds of streams */
};

/* Where a work is, for the counts. */
enum bhi_work_stage {
    BHI_WORK_PREPARING, /* in to_stage, with a stager, or staged */
    BHI_WORK_PARKED,    /* waits for its kernel */
    BHI_WORK_IN_FLIGHT,
    BHI_WORK_FINISHING,
    BHI_WORK_OVER,
    BHI_WORK_STAGES
};

/* An attempt at a job. It belongs to the list that it is in, or to the thread that has taken it. */
struct bhi_work {
    struct bhi_list node; /* in a bhi_work_list */
    struct bhi_runner *runner;
    struct bhi_job *job;
    enum bhi_work_stage stage;
    struct bhi_job_request *request; /* owned; NULL: not parsed yet */
    struct bhi_kernel_entry *kernel; /* counted there as a user */
    struct bhi_eval_plan *plan;      /* for an expression, instead of a kernel; a reference */
    struct bhi_pieces pieces;        /* what is submitted for an expression; owned */
    struct bhi_input_entry **inputs; /* owned; for each binding, counted there as a user; or NULL */
    bool holds_counted;              /* counted in runner->holders */
    struct bhi_used_mark *reads;     /* owned; for each binding: the state of its input; or NULL */
    uint64_t bytes;                  /* its part of runner->bytes */
    uint32_t stream;
    bool assigned; /* it is counted in the stream's |assigned| */
    bh_event *event;
    struct bhi_attempt attempt;
    bool record_failed;    /* its end could not be recorded */
    bool placement_failed; /* it is sealed, and an output cannot be put in its place */
};

struct bhi_work_list {
    struct bhi_list works;
    size_t count;
    uint64_t since_ns; /* for the finishers' lists: when its first work came */
};

/* A work is in one list at a time. The runner's lock guards them. */
static inline void bhi_work_list_init(struct bhi_work_list *list) {
    bhi_list_init(&list->works);
    list->count = 0;
}

static inline void bhi_work_push(struct bhi_work_list *list, struct bhi_work *work) {
    bhi_list_append(&list->works, &work->node);
    list->count++;
}

/* NULL: empty */
static inline struct bhi_work *bhi_work_pop(struct bhi_work_list *list) {
    if (!list->count) {
        return NULL;
    }
    struct bhi_work *work = BHI_CONTAINER(list->works.next, struct bhi_work, node);
    bhi_list_remove(&work->node);
    list->count--;
    return work;
}

struct bhi_runner_stream {
    bh_stream *stream;
    uint32_t assigned;  /* works that are meant for the stream and have not ended */
    uint32_t in_flight; /* those of them that are submitted */
    bool reset_needed;  /* it returned UNAVAILABLE: it needs a reset before the next submission */
    struct bhi_work_list staged;
};

/* What a job's line says about its worker. */
struct bhi_runner_kind {
    char *device;      /* as in the job; NULL: the batch's default; owned */
    char selector[48]; /* of that device; "": the default */
    bool limits_memory;
    uint64_t memory_limit;
    /* About the device; asked when the first job needs it, then kept. Used with the lock. */
    bool device_queried;
    uint64_t range; /* how much it binds at once; 0: unknown */
    uint32_t alignment;
};

struct bhi_runner {
    struct bhi_queue *queue;
    const struct bhi_runner_options *options;
    /* |options->streams| of each kind, kind after kind; there is room for all kinds. A kind is made
     * for its first job, with |making| held. The kind and its streams do not change after that. */
    struct bhi_runner_stream *streams;
    struct bhi_runner_kind kinds[BHI_RUNNER_KINDS];
    uint32_t stream_count;
    pthread_mutex_t making; /* taken before |lock| */

    bh_queue *ends; /* of what is in flight; the main thread waits for it, and for |news| */
    int news;       /* an eventfd: something has changed since the main thread looked */

    pthread_mutex_t lock;
    pthread_cond_t stage_wake, compile_wake, finish_wake;
    struct bhi_work_list to_stage, to_compile, to_write, to_place, over;
    struct bhi_work_list thirsty; /* works that wait for memory */
    size_t at[BHI_WORK_STAGES];
    bool stopping;               /* nothing new is started */
    bool quitting;               /* threads end */
    uint64_t bytes, bytes_limit; /* of buffers, including inputs that are kept */
    size_t holders;              /* works that hold some of them */

    struct bhi_read_hashes *hashes; /* reads.c; owned */
    struct bhi_list kernels;        /* kernel_cache.c */
    struct bhi_list inputs;         /* input_cache.c */
    struct bhi_list templates;      /* stage_eval.c */
    size_t kernel_count, input_count, template_count;
    uint64_t ticks; /* counts uses, for both caches: a larger number is more recent */

    /* Used by the main thread only. */
    struct bhi_work_list
        deferred;           /* found too little memory: one at a time when all others ended */
    bool solo_running;      /* one of them runs */
    uint32_t refusals;      /* by the environment, in a row */
    uint64_t refused_ns;    /* time of the first of them; CLOCK_MONOTONIC */
    uint64_t hold_until_ns; /* before this, nothing is taken or given to a worker; 0: no limit */
    bh_status told;         /* the reason to wait that was reported last; BH_OK: none */
    int told_errno;
    uint64_t told_ns;
    bool has_served;       /* a job has ended well */
    bool refused_for_good; /* the last refusal was permanent */
    bool interrupted;      /* by a signal, or cancelled */
    bool halted;           /* by failures: jobs that no worker has had stay as they were */
    uint64_t failed;       /* jobs that failed by themselves */
    struct bhi_complaint why;
    uint64_t stuck; /* jobs whose complete outputs are not in their places */

    pthread_t threads[BHI_RUNNER_STAGERS + BHI_RUNNER_COMPILERS + BHI_RUNNER_FINISHERS];
    size_t thread_count;
};

/* threads.c */
bool bhi_runner_start_threads(struct bhi_runner *runner, struct bhi_complaint *complaint);
void bhi_runner_end_threads(struct bhi_runner *runner);

#endif
