/* A chaos run on its way: what its threads share.
 *
 *   the caller's thread   submits the workload, and now and then lets everything come to rest
 *   injector              breaks things, and takes back what is not for good
 *   a collector a stream  waits for each event in turn, and reads back
 *   clock                 notices when the machine has stood still, or keeps a process from running
 *
 * Two locks. |submitting| is held across a submission, so that operations are numbered in the order
 * in which they are submitted. |lock| guards what is said below; it is taken under |submitting|,
 * never the other way round, and is held for bookkeeping only.
 */
#ifndef BHI_CHAOS_ENGINE_RUN_H
#define BHI_CHAOS_ENGINE_RUN_H

#include <pthread.h>

#include "chaos/engine/options.h"
#include "chaos/engine/outside.h"
#include "chaos/engine/recovered.h"
#include "chaos/engine/schedule.h"
#include "chaos/engine/starved.h"
#include "chaos/engine/workload.h"

enum { BHI_RUN_LATE = 32 }; /* so many operations later each event is looked at again */

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
    uint32_t baits;   /* of those */
    uint64_t ready;   /* results since a fault hit its worker */
    uint64_t flushed; /* run->flush that it has done */

    /* Its collector's alone. */
    struct bhi_operation *late[BHI_RUN_LATE];
    uint32_t late_at;
};

/* A fault that will be taken back. */
struct bhi_healing {
    bool pending;
    uint64_t number, at_ns;
    int32_t pid; /* slow: to be resumed; 0: full */
};

struct bhi_chaos_run {
    const struct bhi_engine_options *options;
    struct bhi_history *history; /* |lock| */
    uint64_t start_ns;
    const char *runtime_parent;
    bh_context *context;
    bh_kernel *work, *hang, *bomb;
    bh_buffer *nothing; /* bound where an operation has no input */
    struct bhi_run_stream streams[BHI_ENGINE_STREAMS];
    uint32_t stream_count;
    struct bhi_outside outside;
    /* A slow machine is given as many times the time for everything. */
    uint64_t slowness;

    pthread_mutex_t submitting;
    struct bhi_workload workload; /* |submitting| */
    uint64_t submitted;           /* |submitting| to change, |lock| besides */
    uint64_t replayed;            /* the same, by the names of the other run */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* an operation was collected, the injector got on, something else */
    uint64_t ready, poisoned, lost;
    bool closing;        /* collectors end when their queues are empty, the clock at once */
    uint64_t flush;      /* counted up: collectors shall look again at all that they have */
    bool rest_requested; /* the injector shall rest */
    bool resting;        /* it does: nothing is in effect that is not for good */
    bool faults_stopped; /* no more faults */
    bool has_injector;   /* there is an injector */
    bool injector_ended; /* it has ended */
    uint64_t faults;
    struct bhi_recovered recovered;
    uint64_t fault_after;         /* replay: no operation of a higher name before the next fault */
    struct bhi_record first_rest; /* what there was at the first rest; the caller's alone */
    pthread_t injector, clock;
    bool has_clock;
    /* Held while somebody opens what has to be closed before it is counted what is free. */
    pthread_mutex_t looking;
    struct bhi_starved starved; /* the clock's alone */

    /* The injector's alone. */
    struct bhi_healing slow[BHI_ENGINE_STREAMS], full;
    int32_t stopped[BHI_ENGINE_STREAMS]; /* worker of each stream that was stopped for good */
    int32_t hit[BHI_ENGINE_STREAMS];     /* that is as good as dead */
    uint64_t full_limit;                 /* what RLIMIT_NOFILE was */
    uint32_t missed_told;                /* kinds of which it was said why */
};

/* Nanoseconds since it began. */
uint64_t bhi_run_now(const struct bhi_chaos_run *run);
void bhi_run_note(struct bhi_chaos_run *run, const struct bhi_record *record);
void bhi_run_say(const struct bhi_chaos_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void bhi_run_cond_init(pthread_cond_t *cond);
/* Waits for |changed|, |lock| held, until |at_ns| (of bhi_run_now) at most. */
void bhi_run_wait(struct bhi_chaos_run *run, uint64_t at_ns);

/* -- submitting (run_submit.c) */

/* |submitting| is held. False: it was refused, which is noted. */
bool bhi_run_submit(struct bhi_chaos_run *run, const struct bhi_plan *plan, uint64_t name);
/* Hang or oom, with its FAULT. */
bool bhi_run_submit_bait(struct bhi_chaos_run *run, const struct bhi_scheduled *fault,
                         uint64_t name);
/* A collector's thread. */
void *bhi_run_collect(void *stream);

/* -- faults (run_faults.c) */

void *bhi_run_inject(void *run);

/* -- the clock (run_clock.c) */

void *bhi_run_watch_clock(void *run);

/* -- rest (run_rest.c) */

/* Nothing in flight, no fault in effect, workers ready: takes a sample. */
void bhi_run_rest(struct bhi_chaos_run *run);

#endif
