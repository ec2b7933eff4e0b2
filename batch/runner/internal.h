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
#ifndef BHI_BATCH_RUNNER_INTERNAL_H
#define BHI_BATCH_RUNNER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "batch/job/request.h"
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
    struct bhi_work *next;
    struct bhi_runner *runner;
    struct bhi_job *job;
    enum bhi_work_stage stage;
    struct bhi_job_request *request; /* owned; NULL: not parsed yet */
    struct bhi_kernel_entry *kernel; /* counted */
    bh_template *template_;          /* of an expression, in place of a kernel; a reference */
    struct bhi_pieces pieces;        /* what it is submitted as; owned */
    struct bhi_input_entry **inputs; /* owned; for each binding: counted, or NULL */
    bool holds;                      /* counted in runner->holders */
    uint64_t bytes;                  /* of runner->bytes */
    uint32_t stream;
    bool assigned; /* counted with it */
    bh_event *event;
    struct bhi_attempt attempt;
    bool broken; /* the record could not be made */
    bool stuck;  /* it is sealed, and an output cannot be put in its place */
};

struct bhi_work_list {
    struct bhi_work *first, **last;
    size_t count;
    uint64_t since_ns; /* of the finishers' lists: when the first one came */
};
void bhi_work_list_init(struct bhi_work_list *list);
void bhi_work_push(struct bhi_work_list *list, struct bhi_work *work);
struct bhi_work *bhi_work_pop(struct bhi_work_list *list); /* NULL: it is empty */

struct bhi_runner_stream {
    bh_stream *stream;
    uint32_t assigned;  /* works that are meant for it and have not ended */
    uint32_t in_flight; /* of them, submitted */
    bool refused;       /* it answered UNAVAILABLE: reset before the next submission */
    struct bhi_work_list staged;
};

/* What a job may say of its worker. */
struct bhi_runner_kind {
    char *device;      /* as the job has it; NULL: the batch's; owned */
    char selector[48]; /* of the device; empty: the default */
    bool limits_memory;
    uint64_t memory_limit;
    /* Of the device, asked when the first job needs it, and kept with the lock. */
    bool asked;
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
    bool news;                   /* for the main thread; it has not looked since */
    bool stopping;               /* nothing new is begun */
    bool quitting;               /* threads end */
    uint64_t bytes, bytes_limit; /* of buffers, those included that are kept for later */
    size_t holders;              /* works that have some of them */

    struct bhi_kernel_entry *kernels;     /* stage_kernel.c */
    struct bhi_input_entry *inputs;       /* stage_input.c */
    struct bhi_template_entry *templates; /* stage_eval.c */
    size_t kernel_count, input_count, template_count;
    uint64_t ticks; /* of both caches: who was used last */

    /* The main thread's. */
    struct bhi_work_list
        deferred;           /* found too little memory: one at a time when all others ended */
    bool solo;              /* one of them runs */
    uint32_t refusals;      /* by the environment, in a row */
    uint64_t refused_ns;    /* when the first of them was; CLOCK_MONOTONIC */
    uint64_t hold_until_ns; /* nothing is taken or given to a worker before; 0: at once */
    bh_status told;         /* why it waits, as last told; BH_OK: it was not */
    int told_errno;
    uint64_t told_ns;
    bool hopeless;    /* the last refusal was for ever */
    bool interrupted; /* by a signal */
    bool halted;      /* by too many failures: what no worker has had is as it was */
    uint64_t failed;  /* jobs, by themselves */
    struct bhi_complaint why;
    uint64_t stuck; /* jobs whose outputs are complete, and not in their places */

    pthread_t threads[BHI_RUNNER_STAGERS + BHI_RUNNER_COMPILERS + BHI_RUNNER_FINISHERS];
    size_t thread_count;
};

/* There is something for the main thread to do. With the lock. */
void bhi_runner_wake(struct bhi_runner *runner);
/* Moves a work that the caller has on to |stage|, in the counts. With the lock. */
void bhi_work_enter(struct bhi_work *work, enum bhi_work_stage stage);
/* When the attempt began and ended, by the calendar, from its verdict. */
void bhi_work_set_times(struct bhi_attempt *attempt);
/* The attempt is over; the caller has filled in the verdict. Gives it to the main thread. */
void bhi_work_end(struct bhi_work *work);
/* The attempt ends without an event, or with another verdict than the event's. */
void bhi_work_refuse(struct bhi_work *work, bh_status status, int sys_errno, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
/* The temporary name of binding |index|. */
void bhi_work_temporary(const struct bhi_work *work, uint32_t index, char *out, size_t capacity);

/* -- threads.c ---------------------------------------------------------------------------
 */
bool bhi_runner_start_threads(struct bhi_runner *runner, struct bhi_complaint *complaint);
void bhi_runner_end_threads(struct bhi_runner *runner);
/* Gives |work| to the finishers: |list| is to_write or to_place. With the lock. */
void bhi_runner_finish(struct bhi_runner *runner, struct bhi_work_list *list,
                       struct bhi_work *work);

/* -- streams.c ---------------------------------------------------------------------------
 */
/* The kind that the batch's options say. */
bool bhi_runner_make_streams(struct bhi_runner *runner, struct bhi_complaint *complaint);
/* Finds the kind of stream that the work needs, or makes it, and chooses the one that has the least
 * to do. False: the work is over. */
bool bhi_runner_choose_stream(struct bhi_work *work);
/* What the device of the work's stream binds at once, *out_range 0: not known. Blocks where nobody
 * has asked that device before. */
bh_status bhi_runner_limits(const struct bhi_work *work, uint64_t *out_range,
                            uint32_t *out_alignment, bh_detail *detail);
void bhi_runner_free_streams(struct bhi_runner *runner);

/* -- stage.c ------------------------------------------------------------------------------------
 */
/* Makes |work| ready, or ends it, or leaves it in a list. Thread: a stager. */
void bhi_stage(struct bhi_work *work);
/* What a job is told whose file the system refuses: BH_SYSTEM may pass by, |otherwise| not. */
bh_status bhi_stage_blame(int sys_errno, bh_status otherwise);
/* Gives back what was staged: buffers, cache entries, memory. */
void bhi_stage_release(struct bhi_work *work);

/* -- stage_kernel.c -----------------------------------------------------------------------------
 */
/* True: work->kernel is made. False: the work is in another list, or over. */
bool bhi_stage_kernel(struct bhi_work *work);
/* Thread: a compiler. */
void bhi_stage_compile(struct bhi_work *work);
bh_kernel *bhi_kernel_entry_kernel(struct bhi_kernel_entry *entry);
/* NULL: types need not match. */
const struct bhi_kernel_types *bhi_kernel_entry_types(const struct bhi_kernel_entry *entry);
void bhi_kernel_entry_drop(struct bhi_runner *runner, struct bhi_kernel_entry *entry);
void bhi_kernels_free(struct bhi_runner *runner);

/* -- stage_eval.c: jobs that compute an expression ----------------------------------------------
 */
/* True: work->template_ is made. False: the work is over. */
bool bhi_stage_template(struct bhi_work *work);
/* The inputs have buffers: what the outputs are. False: the work is over. */
bool bhi_stage_infer(struct bhi_work *work);
/* All have buffers: what is submitted. Blocks while a kernel is compiled. False: the work is over.
 */
bool bhi_stage_cut(struct bhi_work *work);
/* How many bytes a file may have for all arrays of the work to be computed in one piece; such an
 * input may be shared, as it is never described anew. */
uint64_t bhi_stage_whole(const struct bhi_work *work);
void bhi_templates_free(struct bhi_runner *runner);

/* -- stage_input.c ------------------------------------------------------------------------------
 */
/* Reserves memory for what the work binds. False: it waits for others. */
bool bhi_stage_reserve(struct bhi_work *work);
/* Makes the buffer of input |index|, or finds it. False: the work is over. */
bool bhi_stage_input(struct bhi_work *work, uint32_t index);
/* |spoilt|: nobody else gets it any more. */
void bhi_input_entry_drop(struct bhi_runner *runner, struct bhi_input_entry *entry, bool spoilt);
/* Those that are only kept for later: descriptors, too, are needed by what runs now. */
void bhi_inputs_drop_unused(struct bhi_runner *runner);
void bhi_inputs_free(struct bhi_runner *runner);

/* -- finish.c -----------------------------------------------------------------------------------
 */
/* Threads: finishers. |count| works, of which each ends or goes on. */
void bhi_finish_write(struct bhi_work **works, size_t count);
void bhi_finish_place(struct bhi_work **works, size_t count);
/* Removes what an attempt has left under temporary names. */
void bhi_finish_sweep(struct bhi_work *work);

#endif
