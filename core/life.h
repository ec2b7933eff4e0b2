/* A worker's life: how far its process has come, and how it ends. A pure machine: no I/O, no clock;
 * times are passed in. All that is known of a worker's death is in it, and nowhere else.
 *
 *      SPAWNING ──hello──▶ HELD ──ready──▶ RUNNING
 *         │                  │                │
 *         ├──────────────────┴────────────────┴──a socket closed──▶ HUNG_UP ──▶ EXITING   alive
 *   kill  │                                                            │ silent    │     ▲
 *         ├───────────────▶ DOOMED ──born──▶ KILLED ◀──────────────────┴───────────┘     │
 *  pidfd  │                                    │                                         ▼
 *         ├───────────────────────┬────────────┘                                        dying
 *         ▼                       ▼
 *       EXITED                 HOLDING ──told──▶ TOLD    its zygote keeps its device until told
 *         │                       │               │
 *         └──its status, the death of its zygote, or too late──▶ CONFIRMED ──▶ BURIED
 *
 * Each state has a bound, or somebody owes what ends it:
 *
 *   SPAWNING, HELD     start_by_ns; then it is killed
 *   RUNNING            lives as long as it likes
 *   HUNG_UP, EXITING   due_ns; then it is looked at: killed, unless the kernel is ending it
 *   DOOMED             start_by_ns; then its zygote is ended, or the start given up
 *   KILLED             the kernel ends it; a loader is given up at due_ns
 *   EXITED             due_ns; its exit status stays unknown then
 *   HOLDING            due_ns; at once if its stream waits for it
 *   TOLD               the zygote's: until then the device may go on writing (decision 4)
 *   CONFIRMED          until its obituary is complete (bhi_life_around)
 *
 * A kill is no death: what the worker completed before it is confirmed dead counts (E11). */
#ifndef BHI_CORE_LIFE_H
#define BHI_CORE_LIFE_H

#include <bulkhead/bulkhead.h>

enum bhi_life_state {
    BHI_SPAWNING, /* asked for */
    BHI_HELD,     /* its hello was right; what it is told waits */
    BHI_RUNNING,  /* ready, and checked: serves a stream, or is a spare */
    BHI_HUNG_UP,  /* a socket of it has closed: it must end soon */
    BHI_EXITING,  /* the same, and the kernel has been seen to end it; a device takes a while */
    BHI_DOOMED,   /* to be killed as soon as it has a pid */
    BHI_KILLED,   /* SIGKILL was sent */
    BHI_EXITED,   /* its process has ended; the zygote owes its exit status */
    BHI_HOLDING,  /* the same; the zygote holds its device */
    BHI_TOLD,     /* the zygote was told to release the device, and owes the status */
    BHI_CONFIRMED,
    BHI_BURIED,
    BHI_LIFE_STATES
};

enum bhi_life_event {
    BHI_LIFE_NOTHING,
    BHI_LIFE_BORN,   /* its pidfd is there */
    BHI_LIFE_UNBORN, /* it could not be forked, or its pidfd not be received */
    BHI_LIFE_HELLO,
    BHI_LIFE_READY,
    BHI_LIFE_KILL,       /* it has been sentenced: kill and what belongs to it are set */
    BHI_LIFE_HANG_UP,    /* a socket of it has closed */
    BHI_LIFE_SEEN,       /* the kernel has been seen to end it */
    BHI_LIFE_EXIT,       /* its pidfd says so */
    BHI_LIFE_UNWATCHED,  /* killed, and no pidfd will say when it has ended */
    BHI_LIFE_STATUS,     /* its zygote has reported how it ended */
    BHI_LIFE_RELEASE,    /* the zygote was told to release its device */
    BHI_LIFE_START_LATE, /* these four come from bhi_life_due */
    BHI_LIFE_LATE,
    BHI_LIFE_ORPHANED,
    BHI_LIFE_BURY,
    BHI_LIFE_EVENTS
};

/* What the caller has to do after an event. */
enum bhi_life_act {
    BHI_DO_NOTHING,
    BHI_DO_KILL,      /* send SIGKILL now */
    BHI_DO_END_START, /* kill it: it was not ready in time */
    BHI_DO_LOOK,      /* BHI_LIFE_SEEN if the kernel is ending it; else kill it */
    BHI_DO_RELEASE,   /* tell the zygote; then BHI_LIFE_RELEASE */
    BHI_DO_GIVE_UP,   /* SIGKILL has not ended it: it counts as dead */
};

/* Why a worker is killed. */
enum bhi_kill {
    BHI_KILL_NONE,
    BHI_KILL_DEADLINE,
    BHI_KILL_CANCEL,
    BHI_KILL_COMPILE, /* compiling took too long */
    BHI_KILL_PROTOCOL,
    BHI_KILL_START,   /* too slow to start, or not isolated as required */
    BHI_KILL_RETIRED, /* no longer needed, or the next submission needs another worker */
    BHI_KILL_LOST,    /* its device was lost */
    BHI_KILL_LEFT,    /* it was dying, and its stream has gone on without it */
};

/* How far the submission that a worker is killed for has come. */
enum bhi_phase {
    BHI_PHASE_RUNS,
    BHI_PHASE_UNBEGUN,
    BHI_PHASE_COMPILES,
    BHI_PHASE_BEGINS, /* it began while its worker was killed */
};

/* Has it reported the loss of its device? Each includes the ones before. */
enum bhi_loss {
    BHI_LOSS_NONE,
    BHI_LOSS_REPORTED,
    BHI_LOSS_BLAMED, /* on a kernel */
    BHI_LOSS_FINAL,  /* for a copy that runs again: the worker's results end there */
};

struct bhi_life {
    enum bhi_life_state state;
    enum bhi_life_state came_to; /* how far its start has come: SPAWNING, HELD or RUNNING */
    bool born;                   /* its pidfd is known */
    bool holds;                  /* the zygote holds its device until told (decision 4) */
    bool is_loader;              /* SIGKILL may not end it; all that it can do is complete a read */
    bool given_up;               /* SIGKILL has not ended it in time */
    uint64_t start_by_ns;
    uint64_t due_ns; /* when the state ends by itself; BH_FOREVER: it does not */

    uint64_t exited_ns;         /* when its process had ended; 0: that was not noticed */
    uint64_t limited_ns;        /* its processor time then, as RLIMIT_CPU counts; 0: not known */
    int exit_kind, exit_status; /* si_code (0: not known), si_status */

    enum bhi_kill kill;
    uint64_t kill_event;       /* the event whose deadline or cancel killed it */
    bh_reason kill_reason;     /* why, where |kill| does not say it */
    enum bhi_phase kill_phase; /* of |kill_event| when it was killed, as the worker says */
    bool kill_stopped;         /* somebody had stopped its process when it was killed */
    char kill_text[256];

    _Atomic bool violated; /* nothing that it writes counts any more; set under the lock */
    enum bhi_loss loss;
};

/* What is true around it. */
struct bhi_life_around {
    bool zygote_lost;        /* it is dead or dying: it reports nothing any more */
    bool zygote_gone;        /* it is dead, and so is every process that it forked */
    bool device_free;        /* nobody can hold the worker's device any more */
    bool stream_left;        /* its stream has gone on without it (decision 4), or soon will (C3) */
    uint64_t obituary_at_ns; /* its obituary waits for a trace until then; 0: for nothing */
};

void bhi_life_init(struct bhi_life *life, uint64_t start_by_ns, bool is_loader);
/* Takes an event, and returns what to do. An event that cannot be is our bug: it aborts. */
enum bhi_life_act bhi_life_step(struct bhi_life *life, enum bhi_life_event event, uint64_t now_ns);
/* The same for events that tell more. */
enum bhi_life_act bhi_life_born(struct bhi_life *life, bool holds, uint64_t now_ns);
void bhi_life_unborn(struct bhi_life *life, uint64_t now_ns); /* kill_text: the caller's */
void bhi_life_status(struct bhi_life *life, int exit_kind, int exit_status, uint64_t now_ns);
/* Its zygote has reported how it ended, and holds its device. */
void bhi_life_ended(struct bhi_life *life, int exit_kind, int exit_status);
/* Its process has ended, it is known how or has been awaited long enough, and its device is still held: all
 * that goes on is what the device runs. */
bool bhi_life_is_held(const struct bhi_life *life, uint64_t now_ns);
void bhi_life_exit(struct bhi_life *life, uint64_t limited_ns, uint64_t now_ns);
/* Returns the event that is due by itself, or BHI_LIFE_NOTHING; then *out_again_ns is when to ask
 * again, unless something happens before. After BHI_LIFE_BURY the caller buries it, and then takes
 * the step. */
enum bhi_life_event bhi_life_due(const struct bhi_life *life, const struct bhi_life_around *around,
                                 uint64_t now_ns, uint64_t *out_again_ns);

/* It was ready once. */
static inline bool bhi_life_served(const struct bhi_life *life) {
    return life->came_to == BHI_RUNNING;
}
/* It has not been sentenced, and has not been seen to end. */
static inline bool bhi_life_is_alive(const struct bhi_life *life) {
    return life->state <= BHI_EXITING;
}
/* It ends without having been told to. */
static inline bool bhi_life_is_dying(const struct bhi_life *life) {
    return life->state == BHI_EXITING || life->state >= BHI_EXITED;
}
/* Returns the signal that ended it; 0: none, or that is not known. */
int bhi_life_signal(const struct bhi_life *life);
/* Its start is late, and it has no pidfd yet: its zygote does not answer. */
bool bhi_life_is_overdue(const struct bhi_life *life, uint64_t now_ns);

#endif
