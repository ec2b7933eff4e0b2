/* A chaos run in progress: what its threads share.
 *
 *   the caller's thread   submits the workload, and brings everything to rest from time to time
 *   injector              injects faults, and ends those that are not permanent
 *   a collector a stream  waits for each event in turn, and reads the outputs
 *   clock                 notices when the machine stands still or a process cannot run
 *
 * There are two locks. |submitting| is held across a submission, so that operations are numbered in
 * the order in which they are submitted. |lock| guards the fields that say so below; it is taken
 * under |submitting|, never the other way round, and is held for bookkeeping only.
 */
#ifndef BHI_CHAOS_ENGINE_RUN_H
#define BHI_CHAOS_ENGINE_RUN_H

#include <pthread.h>

#include "chaos/engine/look.h"
#include "chaos/engine/options.h"
#include "chaos/engine/outside.h"
#include "chaos/engine/recovered.h"
#include "chaos/engine/schedule.h"
#include "chaos/engine/starved.h"
#include "chaos/engine/workload.h"

enum { BHI_RUN_GROUP = 64 }; /* invocations of a group */
enum { BHI_RUN_LATE = 32 };  /* each event is looked at again this many operations later */

/* How long an operation of the workload may run on a machine that is not slow. */
#define BHI_RUN_DEADLINE_NS 2000000000ull

/* What a worker does with device memory: the moments of the fault `device`. */
enum bhi_device_stage {
    BHI_STAGE_MAKE,   /* it is to make and export memory */
    BHI_STAGE_SHARE,  /* another stream is to import memory that it has made */
    BHI_STAGE_IMPORT, /* it is to import memory that another one has made */
    BHI_STAGE_COPY,   /* it is to copy to the host */
    BHI_STAGES
};

struct bhi_run_stream {
    struct bhi_chaos_run *run;
    uint32_t index;
    bh_stream *stream;
    pthread_t collector;
    bool collecting;

    /* |lock| */
    pthread_cond_t work;
    struct bhi_list queue; /* bhi_operation.node; one reference each */
    uint32_t in_flight;
    uint32_t baits;              /* those of them that are baits */
    uint64_t ready;              /* results since the last fault hit its worker */
    uint64_t flushed;            /* the last run->flush that it has done */
    uint64_t stages[BHI_STAGES]; /* how often its worker was given that to do */

    /* Used by its collector only. */
    struct bhi_operation *late[BHI_RUN_LATE];
    uint32_t late_at;
};

/* A fault that ends after some time. */
struct bhi_healing {
    bool pending;
    uint64_t number, at_ns;
    int32_t pid; /* slow: the worker to resume; 0: full */
};

struct bhi_chaos_run {
    const struct bhi_engine_options *options;
    struct bhi_history *history; /* |lock| */
    uint64_t start_ns;
    const char *runtime_parent;
    struct bhi_look look;
    bh_context *context;
    bh_kernel *work, *hang;
    /* Not on a CUDA device. |unguarded| is as |hang|, trusted: it reaches the driver as it is. */
    bh_kernel *unguarded, *bomb;
    bh_kernel *illegal; /* on a CUDA device alone: it writes where no memory is */
    bh_buffer *nothing; /* bound for operations without inputs */
    struct bhi_run_stream streams[BHI_ENGINE_STREAMS];
    uint32_t stream_count;
    struct bhi_outside outside;
    /* On a slow machine every time limit is multiplied by this. */
    uint64_t slowness;

    pthread_mutex_t submitting;
    struct bhi_workload workload; /* |submitting| */
    uint64_t submitted;           /* changed with |submitting| and |lock|, read with either */
    uint64_t replayed;            /* the same, in the names of the other run */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* for example: an operation was collected, the injector has gone on */
    uint64_t ready, poisoned, lost;
    bool closing;        /* collectors end when their queues are empty; the clock ends at once */
    uint64_t flush;      /* counted up when collectors shall finish all that they have */
    bool rest_requested; /* the injector shall rest */
    bool resting;        /* the injector rests: only permanent faults are in effect */
    bool faults_stopped; /* no more faults */
    bool has_injector;   /* there is an injector */
    bool injector_ended; /* it has ended */
    uint64_t faults;
    struct bhi_recovered recovered;
    uint64_t fault_after;         /* replay: the next fault comes before any higher name */
    struct bhi_record first_rest; /* the sample of the first rest; the caller's thread uses it */
    pthread_t injector, clock;
    bool has_clock;
    /* Held by a thread that opens descriptors for a short time, so that they are not counted. */
    pthread_mutex_t looking;
    struct bhi_starved starved; /* used by the clock only */

    /* Used by the injector only. */
    struct bhi_healing slow[BHI_ENGINE_STREAMS], full;
    int32_t stopped[BHI_ENGINE_STREAMS]; /* of each stream: its worker that was stopped for good */
    int32_t hit[BHI_ENGINE_STREAMS];     /* of each stream: its worker that is doomed */
    enum bhi_device_stage stage;         /* that is waited for, */
    uint64_t stage_seen;                 /* and how often it had come before */
    uint64_t full_limit;                 /* the value of RLIMIT_NOFILE before */
    uint32_t missed_told;                /* kinds of faults for which a reason was given */
};

/* Returns nanoseconds since the run began. */
uint64_t bhi_run_now(const struct bhi_chaos_run *run);
void bhi_run_note(struct bhi_chaos_run *run, const struct bhi_record *record);
void bhi_run_say(const struct bhi_chaos_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void bhi_run_cond_init(pthread_cond_t *cond);
/* Waits for |changed| with |lock| held, at most until |at_ns| (as of bhi_run_now). */
void bhi_run_wait(struct bhi_chaos_run *run, uint64_t at_ns);

/* -- submitting (run_submit.c) */

/* Call it with |submitting| held. Returns false if the operation was refused, which is noted. */
bool bhi_run_submit(struct bhi_chaos_run *run, const struct bhi_plan *plan, uint64_t name);
/* Submits a bait, and notes its FAULT. */
bool bhi_run_submit_bait(struct bhi_chaos_run *run, const struct bhi_scheduled *fault,
                         uint64_t name);
/* The thread of a collector. */
void *bhi_run_collect(void *stream);

/* -- faults (run_faults.c) */

void *bhi_run_inject(void *run);

/* -- the clock (run_clock.c) */

void *bhi_run_watch_clock(void *run);

/* -- rest (run_rest.c) */

/* Waits until nothing is in flight, no fault is in effect and workers are ready; then takes a
 * sample. */
void bhi_run_rest(struct bhi_chaos_run *run);

#endif
