/* What should come of a history. A plain graph walk: who needs whom is found by going through all
 * that was submitted before; poison is spread by looking at everybody again and again until nothing
 * changes. It shares no code with the core and looks at none of its structures.
 *
 * It is told what physically happens, in the order in which the supervisor learns of it, and is
 * asked about each end: is it due, and is the verdict the right one. */
#ifndef MODEL_ORACLE_H
#define MODEL_ORACLE_H

#include "program.h"
#include <bulkhead/bulkhead.h>

struct world;

#define LOG    (WORKS + STEPS)
#define DEATHS 128

/* What the verdict says of the cause (E14). */
struct cause {
    int32_t signal, exit_code, vk_result, sys_errno, worker_pid;
    int kernel; /* of which submission */
    uint32_t command_index;
    uint64_t limit;
    bh_blame blame;
};
#define NO_CAUSE {.exit_code = -1, .command_index = BH_NO_COMMAND}

/* A reason for a submission to end by itself. */
struct due {
    bool set;
    bh_status status;
    bh_executed executed;
    int origin;   /* whose fault; NOBODY: its own */
    bool refused; /* and never ran: the fault is an old one, its poison begins here */
    bool anyhow;  /* it must have ended once the call is over */
    struct cause cause;
};

struct opinion {
    uint64_t data;                 /* those that it needs to be READY; a bit for each submission */
    uint64_t order;                /* those that it comes after, if they had not ended */
    uint64_t read, written, whole; /* buffers; whole: all of it, whatever was there */
    bool end_requested;            /* the host has cancelled it */
    bool doomed, ready;
    int origin; /* doomed: with whom the poison began, */
    uint64_t tick;
    uint32_t hops;
    uint64_t statuses;   /* what its status may be, as a bit mask */
    uint64_t fault_tick; /* of its own fault, whatever it is doomed with */
    struct cause cause;
    bool either; /* two of the same origin, equally far away, say different things of it */
    struct due due;
};

struct oracle {
    uint32_t log_count;
    uint64_t ticks, sweeps;
    int forgiven[STREAMS];       /* those before this one failed before a reset, if they do */
    int failure[STREAMS];        /* the earliest doomed one since reset, or NOBODY */
    uint64_t sweep_due[STREAMS]; /* strict: what is left on it must go; their order; 0: no */
    uint64_t gives_up[STREAMS];  /* what it answers while it can have no worker: bit mask */
    uint32_t death_count[STREAMS];
    struct opinion works[WORKS];
    struct {
        enum { LOG_WORK, LOG_DISCARD, LOG_PATCH } kind;
        int work, buffer; /* the submission; what the host has written to */
        uint64_t value;
    } log[LOG];
    uint64_t deaths[STREAMS][DEATHS]; /* when it lost one that was no good, since it healed */
};

static inline uint64_t oracle_status_bit(bh_status status) {
    return 1ull << (status & 63);
}

void oracle_init(struct world *world);
/* Submission |work| is about to be queued: works out what it needs. */
void oracle_submit(struct world *world, int work);
/* What the supervisor is about to tell the core. */
void oracle_expect(struct world *world, int work, const struct due *due);
/* The core says that it has ended. */
void oracle_ended(struct world *world, int work, const bh_verdict *verdict);
/* The call is over. */
void oracle_settled(struct world *world);
void oracle_reset(struct world *world, int stream);
void oracle_host_wrote(struct world *world, int buffer, uint64_t value, bool whole);
/* Whether |work| may go into a lane now (E15). */
bool oracle_may_release(const struct world *world, int work, int *out_obstacle);
/* Who decides the content of |buffer| now, and who has used it: bit masks (B5). */
uint64_t oracle_writers(const struct world *world, int buffer, uint64_t *out_users);
/* What a CLEAN buffer holds. */
uint64_t oracle_value(struct world *world, int buffer, bool *out_known);
/* What a good run leaves in a buffer that it writes. */
uint64_t oracle_result(int work, int buffer, uint64_t inputs, uint64_t old, bool keeps_old);
/* The stream has lost a worker that was no good; it is as new. */
void oracle_lost_worker(struct world *world, int stream, uint64_t now_ns);
void oracle_healed(struct world *world, int stream);
uint32_t oracle_deaths_since(const struct world *world, int stream, uint64_t since_ns);
/* Everything once more, from what is known at the end. */
void oracle_final(struct world *world);

/* verdicts.c: compares the verdict of a submission that has ended with what the oracle says of it.
 * What every verdict must say: stream, times, whether the submission ran. */
void verdict_check_frame(struct world *world, int work, const bh_verdict *verdict);
/* That of a submission which was doomed before it ended. */
void verdict_check_doomed(struct world *world, int work, const bh_verdict *verdict);
/* That of any other: how it ended by itself. Tells the oracle that it is READY, or its cause. */
void verdict_check_own(struct world *world, int work, const bh_verdict *verdict);

#endif
