/* An index of a history for the checker: by operation, event, fault and worker. It borrows the
 * records of the history. */
#ifndef BHI_CHAOS_CHECK_LEDGER_H
#define BHI_CHAOS_CHECK_LEDGER_H

#include "chaos/history/history.h"

struct bhi_ledger_fault {
    const struct bhi_record *record;
    uint64_t begin_ns, end_ns; /* while it was in effect: one point but for slow and full */
};

struct bhi_ledger_op {
    uint64_t number;
    const struct bhi_record *submit;      /* the first */
    const struct bhi_record *end;         /* the first; NULL: there is none */
    const struct bhi_ledger_fault *bait;  /* it is this fault; NULL: it is none, or not noted */
    const struct bhi_ledger_op *taken_by; /* overwrites its output's memory; NULL: nobody */
    const struct bhi_ledger_op *inputs[BHI_CHAOS_INPUTS], *wait; /* NULL: not in the history */
    bool read_back;                                              /* it has a RESULT */
    bool known;                                                  /* |digest| is of what it gives */
    uint8_t digest[BHI_CHAOS_DIGEST];
};

/* One worker that was hit by one fault. */
struct bhi_ledger_hit {
    int32_t pid;
    const struct bhi_ledger_fault *fault;
};

/* Whose worker it was, by what was ended on it. */
struct bhi_ledger_worker {
    int32_t pid;
    uint32_t stream;
};

struct bhi_ledger {
    const struct bhi_history *history;
    struct bhi_ledger_op *ops; /* by number; owned, as all that follow */
    size_t op_count;
    const struct bhi_ledger_op **events; /* by event id */
    struct bhi_ledger_fault *faults;     /* none that missed; by time */
    size_t fault_count;
    struct bhi_ledger_hit *hits; /* by pid */
    size_t hit_count;
    struct bhi_ledger_worker *workers; /* by pid, then stream; each once or more often */
    size_t worker_count;
    const struct bhi_record **stalls; /* of the run's clock */
    size_t stall_count;
    const struct bhi_record **starved; /* of its processes; by time */
    size_t starved_count;
    uint64_t last_ns; /* of all records */
};

/* False: out of memory. |doubt| is called for whatever contradicts itself: such a history is not
 * what happened. */
bool bhi_ledger_init(struct bhi_ledger *ledger, const struct bhi_history *history,
                     void (*doubt)(void *user, const struct bhi_record *record, const char *text),
                     void *user);
void bhi_ledger_fini(struct bhi_ledger *ledger);

/* NULL: there is none. */
const struct bhi_ledger_op *bhi_ledger_find(const struct bhi_ledger *ledger, uint64_t number);
const struct bhi_ledger_op *bhi_ledger_find_event(const struct bhi_ledger *ledger, uint64_t event);
/* The first of the hits of |pid|; *out_count: how many follow, with it. */
const struct bhi_ledger_hit *bhi_ledger_hits(const struct bhi_ledger *ledger, int32_t pid,
                                             size_t *out_count);
/* Whether |fault| hit a worker of |stream|, as far as the history tells. */
bool bhi_ledger_hit_stream(const struct bhi_ledger *ledger, const struct bhi_ledger_fault *fault,
                           uint32_t stream);
/* For how long, of the time between, the machine stood still. */
uint64_t bhi_ledger_stalled(const struct bhi_ledger *ledger, uint64_t from_ns, uint64_t to_ns);
/* For how long, of the time between, the process |pid| wanted a processor and had none. */
uint64_t bhi_ledger_starved(const struct bhi_ledger *ledger, int32_t pid, uint64_t from_ns,
                            uint64_t to_ns);
/* For how long the machine stood still, or one process of the run or another was starved: whichever
 * is more. What is known to have served another stream than |stream| does not count; UINT32_MAX:
 * all do. */
uint64_t bhi_ledger_held_up(const struct bhi_ledger *ledger, uint32_t stream, uint64_t from_ns,
                            uint64_t to_ns);

static inline bool bhi_ledger_ready(const struct bhi_ledger_op *op) {
    return op && op->end && !op->end->end.lost && op->end->end.state == BH_EVENT_READY;
}
static inline bool bhi_ledger_poisoned(const struct bhi_ledger_op *op) {
    return op && op->end && !op->end->end.lost && op->end->end.state == BH_EVENT_POISONED;
}

#endif
