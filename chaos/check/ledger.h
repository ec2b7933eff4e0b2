/* An index of a history for the checker: by operation, event, fault and worker. It borrows the
 * records of the history. */
#ifndef BHI_CHAOS_CHECK_LEDGER_H
#define BHI_CHAOS_CHECK_LEDGER_H

#include "chaos/history/history.h"

struct bhi_ledger_fault {
    const struct bhi_record *record;
    uint64_t begin_ns, end_ns; /* while it was in effect; equal, except for slow and full */
};

struct bhi_ledger_op {
    uint64_t number;
    const struct bhi_record *submit;      /* the first */
    const struct bhi_record *end;         /* the first; NULL: there is none */
    const struct bhi_ledger_fault *bait;  /* the fault that it is; NULL: none, or not noted */
    const struct bhi_ledger_op *taken_by; /* overwrites the memory of its output; NULL: none */
    const struct bhi_ledger_op *inputs[BHI_CHAOS_INPUTS], *wait; /* NULL: not in the history */
    bool read_back;                                              /* it has a RESULT record */
    bool known; /* |digest| is that of the expected output */
    uint8_t digest[BHI_CHAOS_DIGEST];
};

/* A worker that a fault hit. */
struct bhi_ledger_hit {
    int32_t pid;
    const struct bhi_ledger_fault *fault;
};

/* A stream that a worker served, as the ends of its operations tell. */
struct bhi_ledger_worker {
    int32_t pid;
    uint32_t stream;
};

struct bhi_ledger {
    const struct bhi_history *history;
    struct bhi_ledger_op *ops; /* by number; owned, as all below */
    size_t op_count;
    const struct bhi_ledger_op **events; /* by event id */
    struct bhi_ledger_fault *faults;     /* without those that missed; by time */
    size_t fault_count;
    struct bhi_ledger_hit *hits; /* by pid */
    size_t hit_count;
    struct bhi_ledger_worker *workers; /* by pid, then stream; a pair may come several times */
    size_t worker_count;
    const struct bhi_record **stalls; /* the stalls of the run's clock */
    size_t stall_count;
    const struct bhi_record **starved; /* the stalls of its processes; by time */
    size_t starved_count;
    uint64_t last_ns; /* the time of the last record */
};

/* For each |op| of |ledger|, by number. */
#define BHI_LEDGER_OPS(op, ledger)                                                                 \
    for (const struct bhi_ledger_op *op = (ledger)->ops;                                           \
         op && op < (ledger)->ops + (ledger)->op_count; op++)
/* Defines |at|: the first of |count| sorted things for which |before|, of |middle|, is false. */
#define BHI_BISECT(at, count, before)                                                              \
    size_t at = 0;                                                                                 \
    for (size_t high = (count), middle; middle = at + (high - at) / 2, at < high;) {               \
        if (before) {                                                                              \
            at = middle + 1;                                                                       \
        } else {                                                                                   \
            high = middle;                                                                         \
        }                                                                                          \
    }

/* Returns false if out of memory. Calls |doubt| for each contradiction: a history with one is not
 * what happened. */
bool bhi_ledger_init(struct bhi_ledger *ledger, const struct bhi_history *history,
                     void (*doubt)(void *user, const struct bhi_record *record, const char *text),
                     void *user);
void bhi_ledger_fini(struct bhi_ledger *ledger);

/* Return NULL if there is none. */
const struct bhi_ledger_op *bhi_ledger_find(const struct bhi_ledger *ledger, uint64_t number);
const struct bhi_ledger_op *bhi_ledger_find_event(const struct bhi_ledger *ledger, uint64_t event);
/* Returns the first hit of |pid|; *out_count is the number of its hits, which follow each other. */
const struct bhi_ledger_hit *bhi_ledger_hits(const struct bhi_ledger *ledger, int32_t pid,
                                             size_t *out_count);
/* Did |fault| hit a worker of |stream|, as far as the history tells? */
bool bhi_ledger_hit_stream(const struct bhi_ledger *ledger, const struct bhi_ledger_fault *fault,
                           uint32_t stream);
/* Returns how long the machine stood still between the two times. */
uint64_t bhi_ledger_stalled(const struct bhi_ledger *ledger, uint64_t from_ns, uint64_t to_ns);
/* Returns how long, between the two times, the process |pid| wanted a processor and got none. */
uint64_t bhi_ledger_starved(const struct bhi_ledger *ledger, int32_t pid, uint64_t from_ns,
                            uint64_t to_ns);
/* Returns how long the machine stood still or some process of the run was starved, whichever is
 * more. Workers that are known to have served only streams other than |stream| do not count;
 * UINT32_MAX: all count. */
uint64_t bhi_ledger_held_up(const struct bhi_ledger *ledger, uint32_t stream, uint64_t from_ns,
                            uint64_t to_ns);

static inline bool bhi_ledger_ready(const struct bhi_ledger_op *op) {
    return op && op->end && !op->end->end.lost && op->end->end.state == BH_EVENT_READY;
}
static inline bool bhi_ledger_poisoned(const struct bhi_ledger_op *op) {
    return op && op->end && !op->end->end.lost && op->end->end.state == BH_EVENT_POISONED;
}

#endif
