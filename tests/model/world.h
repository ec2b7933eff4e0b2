/* The world around the core in which a history is played: a supervisor reduced to its duties,
 * workers that are structs, memory that is a number for each buffer, and a clock that moves only
 * with the steps. It says what physically happens; what should come of it, the oracle says. */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include "core/worker.h"
#include "oracle.h"
#include "program.h"
#include "tally.h"
#include "waiters.h"

#define NOBODY  -1
#define MS      1000000ull
#define SKIP_MS 5000u /* how long a worker may leave a full lane of withdrawn ones alone */

/* One in a worker's lane, and what it made of it. */
struct record {
    int8_t work;
    bool withdrawn; /* the lane says: skip it */
    bool certain;   /* it had not come to it when it was told */
    bool skipped;
    bool cleared;              /* the lane no longer says so */
    bool stop_requested;       /* the supervisor has asked the worker to stop it, */
    bool stopped_for_deadline; /* for its deadline, not for a cancel */
    uint64_t told_ns;
    uint64_t published_ns, compiled_ns, computed_ns;
    struct bhi_outcome result; /* once computed */
    bool claims;               /* more time on the device than there was */
};

enum phase { PHASE_BEFORE, PHASE_COMPILING, PHASE_BEGUN, PHASE_HALF };

/*   started: it has said that it may start all up to that one, and taken them, or only the first;
 *   batch: taken from the lane together, first to last; running: current; computed: before current;
 *   published: up to completed; taken in by the supervisor: up to core_worker.harvested */
struct worker {
    struct worker *next;
    struct bhi_core_worker core;
    int stream; /* NOBODY once it is retired, or left */
    int left;   /* the stream that has gone on without it, until it is buried; or NOBODY */
    bool ready, dead, stopped, hung, violated, zygote_lost, productive;
    bool lie_pending; /* to be found at the next harvest */
    bool caught;      /* it was found; nothing of it counts any more */
    bool kill_requested;
    bool ignores_stop; /* ends nothing, although it said that it can */
    bool end_watched;
    enum bhi_apart kept; /* how far what is in its lane is to be kept apart (trust.h) */
    uint64_t published, started, taken, completed, computed;
    uint64_t current; /* 0: idle */
    uint64_t batch_first, batch_last;
    uint64_t marked; /* the last one that the device has said to begin: not one that was skipped */
    bool merged;
    enum phase phase;
    uint64_t seen; /* hash of what the current one has read at its beginning */
    uint64_t begun_ns;
    uint32_t marker_started, marker_completed;
    uint64_t compiles, runs;   /* the newest that had to be compiled, and has been */
    uint64_t compiling_ns;     /* since when */
    uint64_t saw_of, saw_ns;   /* the one that a look found compiling, and when first */
    uint64_t ran_of, ran_ns;   /* the compiled one that a look found running, and when */
    uint64_t seen_of, seen_ns; /* the merged one that a look found running, and when */
    uint64_t kill_ns, skipped_ns, ready_ns;
    uint64_t kill_started; /* what had begun when it was killed */
    struct bhi_outcome death;
    struct record records[]; /* from 1 on; room for each submission of the program once */
};

struct world_stream {
    struct bhi_core_stream core;
    uint32_t refs;
    uint8_t index;
    bool held;  /* by the host */
    bool heals; /* UNAVAILABLE: once the window has passed since */
    uint64_t gave_up_ns;
    uint32_t losses;      /* unproductive ones in a row */
    uint32_t taken;       /* unproductive ones by others in a row, while something waited */
    uint32_t row;         /* failed starts in a row; what they cost, and when the first and the */
    uint64_t row_cost_ns; /* last failed */
    uint64_t row_since_ns, row_until_ns;
    bool change_reported; /* that its state has changed */
    enum bhi_stream_state seen;
};

/* A kernel that is refused. */
struct hold {
    bh_status status; /* BH_OK: it is not */
    int origin;       /* whose fault that is said to be, or NOBODY */
};

struct world_buffer {
    struct bhi_content content;
    uint32_t refs; /* of submissions */
    uint64_t value;
};

/* A submission as it is now. */
struct life {
    struct bhi_submission *core; /* NULL: not there, or freed */
    bh_event *event;             /* referenced by the host until the end */
    bool submitted, ended;       /* ended: the core has said so */
    bool queued;                 /* the call that queues it is over */
    struct worker *worker;       /* in whose lane it is */
    struct worker *watched;      /* where one who waits for it looks, as far as he was told */
    uint64_t seq;
    uint64_t id; /* of its event */
    uint64_t submitted_ns, published_ns;
    bool begun, done; /* physically, ever */
    bool recorded_ok; /* its completion record was taken in, and is a good one */
    uint8_t runs;
    uint8_t deaths;                      /* of workers that others ended before they had begun it */
    uint64_t old[BUFFERS], out[BUFFERS]; /* memory before its run, and what a whole run left */
    uint32_t buffers;                    /* bit mask: references that it holds */
    struct bh_verdict verdict;           /* as it was when it ended */
};

/* Most histories have few submissions: so the loops over them end at |submitted|, and |lives| and
 * what the oracle has of each are cleared as far as the program goes. */
struct world {
    const struct program *program;
    struct bhi_core core;
    struct world_stream *streams[STREAMS];
    struct world_buffer buffers[BUFFERS];
    struct hold holds[KINDS]; /* by trust_code */
    struct waiter waiters[WAITERS];
    uint32_t waiter_count;
    struct worker *workers; /* that are not buried yet */
    struct worker *serving[STREAMS];
    int last_begun[STREAMS], submitted; /* submitted: the next number, at least */
    uint64_t now_ns, armed_ns, ids;
    int8_t work_of_id[2 * WORKS];
    uint32_t pids, live_events, live_submissions, host_writes, checked;
    bool closed, finished, no_memory[STREAMS];
    bool played_before; /* the same steps, and all that is checked between them was right */
    FILE *trace;
    bool failed;
    char failure[400]; /* "E5: …" */
    struct life lives[WORKS];
    struct oracle oracle;
};

void world_init(struct world *world, const struct program *program, FILE *trace);
/* Plays one step. False: it was not possible, nothing has happened. */
bool world_step(struct world *world, const struct step *step);
/* Goes on fairly until nothing is left to be done, then checks what must hold at the end, and frees
 * everything. After a failure nothing is freed: the core cannot be trusted any more. */
void world_finish(struct world *world);

/* The first failure is kept. |rule|: what is broken. */
void world_fail(struct world *world, const char *rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define FAIL_IF(world, condition, ...)                                                             \
    do {                                                                                           \
        if (condition) {                                                                           \
            world_fail(world, __VA_ARGS__);                                                        \
        }                                                                                          \
    } while (0)
void world_trace(struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* After each call into the core: pumps, and checks what must hold between steps. */
void world_settle(struct world *world);

/* Is the submission of |work| made, and has not ended? */
static inline bool world_is_pending(const struct world *world, int work) {
    return world->lives[work].submitted && !world->lives[work].ended;
}

/* host.c: the host's steps. False: not possible, nothing has happened. */
bool host_submit(struct world *world, int number);
bool host_cancel(struct world *world, int work);
/* All that the stream has on its way. What no worker has come to ends at once, each by itself: none
 * is the victim of another that is cancelled with it. */
bool host_cancel_all(struct world *world, int s);
bool host_map(struct world *world, int b);
bool host_write(struct world *world, int b, bool whole);
bool host_reset(struct world *world, int s);
bool host_release(struct world *world, int s);

/* worker.c: true: something happened. */
bool worker_work(struct world *world, struct worker *worker, uint32_t arg);
bool worker_fail(struct world *world, struct worker *worker, uint32_t arg);
bool worker_hang(struct world *world, struct worker *worker);
bool worker_lie(struct world *world, struct worker *worker, uint32_t arg);
bool worker_die(struct world *world, struct worker *worker, uint32_t arg);
/* The supervisor has it told to end |seq|. */
void worker_told(struct world *world, struct worker *worker, uint64_t seq);
uint64_t worker_started(const struct worker *worker);
/* Does it compile |seq|? That runs no part of a kernel. */
static inline bool worker_compiles(const struct worker *worker, uint64_t seq) {
    return worker->compiles == seq && worker->runs < seq;
}
/* Where it is, as far as the supervisor can see. */
struct bhi_progress_snapshot worker_snapshot(const struct worker *worker);
/* Which one it works on, as far as anybody can see; 0: none. */
uint64_t worker_turn(const struct worker *worker);
/* Its process gets no processor time. */
bool worker_is_starved(const struct worker *worker);
/* Whether it still may do something by itself. */
bool worker_busy(const struct worker *worker);

/* supervise.c */
bool supervise_harvest(struct world *world, struct worker *worker);
bool supervise_assign(struct world *world, uint32_t stream, uint32_t arg);
bool supervise_ready(struct world *world, uint32_t stream);
bool supervise_look(struct world *world);
bool supervise_close(struct world *world);

/* burial.c */
bool burial_bury(struct world *world, struct worker *worker);
/* The stream of a dead worker goes on before it is buried. */
bool burial_leave(struct world *world, struct worker *worker);
/* The one that stream |index| has left; NULL: none. */
struct worker *burial_left(const struct world *world, int index);

/* losses.c: a stream loses its worker, or cannot get one: whether the core keeps to the restart
 * budget. The first two stand around a call that may make a stream UNAVAILABLE. */
#define UNAVAILABLE oracle_status_bit(BH_UNAVAILABLE)
#define NO_DEVICE   oracle_status_bit(BH_NO_DEVICE)
void losses_begin(struct world *world, int index, uint64_t statuses);
void losses_end(struct world *world, int index);
/* The first worker that is lost for nothing is replaced at once, the next ones with a pause that
 * doubles, from 10 ms to 1 s; a good one in between ends that. */
void losses_check_backoff(struct world *world, int index, bool good, bool productive);
/* May the stream give up? Must it (case 50)? |starting|: the worker had not been ready. */
void losses_check_budget(struct world *world, int index, bool productive, bool starting);
/* Others ended its worker: that is free, but eight times the budget in a row is the most (E9). */
void losses_check_taken(struct world *world, int index, bool productive, bool starting);

/* core_ops.c */
extern const struct bhi_core_ops world_core_ops;
void world_unref_stream(struct bhi_core_stream *stream);
struct bh_event *core_ops_new_event(struct world *world, int work);
struct bhi_submission *core_ops_new_submission(struct world *world, int work);

static inline struct world *world_of(struct bhi_core *core) {
    return BHI_CONTAINER(core, struct world, core);
}
static inline struct worker *worker_of(struct bhi_core_worker *core_worker) {
    return BHI_CONTAINER(core_worker, struct worker, core);
}
int work_of_event(const struct bh_event *event);
int work_of_submission(const struct bhi_submission *submission);

#endif
