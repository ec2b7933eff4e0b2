/* Options of a chaos run, as `bulkhead chaos` gives them. */
#ifndef BHI_CHAOS_ENGINE_OPTIONS_H
#define BHI_CHAOS_ENGINE_OPTIONS_H

#include "chaos/history/history.h"

struct bhi_engine_options {
    uint64_t seed;
    uint64_t duration_ns;
    uint64_t fault_count; /* the run ends after this many that did not miss; 0: after duration_ns */
    uint32_t streams;
    uint32_t fault_set; /* bits 1 << bhi_fault_kind */
    double rate;
    double find_rate;   /* header; operations go on until it is reached, for a minute at most */
    bool outside;       /* what hits a worker: by a second process */
    const char *device; /* NULL: the default */
    bool cuda;          /* it is a CUDA device */
    bool verbose;
    /* Injects the faults of another run in place of those of the seed, each after the same
     * operation as there. NULL: none. */
    const struct bhi_history *replay; /* bhi_engine_can_replay must have accepted it */
    /* Called about twice a second with the numbers of operations, READY, POISONED and faults so
     * far. May be NULL. */
    void (*progress)(void *user, uint64_t operations, uint64_t ready, uint64_t poisoned,
                     uint64_t faults);
    /* Gets lines for a person: with |verbose| the library's log and each fault; and once for each
     * kind of fault why it cannot be injected here. May be NULL. Any thread. */
    void (*say)(void *user, const char *line);
    void *user;
};

/* The most streams: a fault's record has room for their workers and two spare ones. */
enum { BHI_ENGINE_STREAMS = 12 };

#endif
