/* Options of a chaos run, as `bulkhead chaos` gives them. */
#ifndef BHI_CHAOS_ENGINE_OPTIONS_H
#define BHI_CHAOS_ENGINE_OPTIONS_H

#include "chaos/history/history.h"

struct bhi_engine_options {
    uint64_t seed;
    uint64_t duration_ns;
    uint64_t fault_count; /* ends after so many that hit something; 0: after duration_ns */
    uint32_t streams;
    uint32_t fault_set; /* 1 << bhi_fault_kind */
    double rate;
    double find_rate;   /* header; operations go on until it is reached, a minute at most */
    bool outside;       /* kill, segv, stop, slow, zygote, garbage, close by a second process */
    const char *device; /* NULL: the default */
    bool verbose;
    /* Another run's faults are injected again, in place of those of the seed: each after the
     * operation after which it was. NULL: none. */
    const struct bhi_history *replay; /* bhi_engine_can_replay has said so */
    /* About twice a second: operations, READY, POISONED, faults so far. May be NULL. */
    void (*progress)(void *user, uint64_t operations, uint64_t ready, uint64_t poisoned,
                     uint64_t faults);
    /* A line for a person: what the library logs and which fault was injected, where |verbose|;
     * why a kind of fault cannot be injected here, once. May be NULL. Any thread. */
    void (*say)(void *user, const char *line);
    void *user;
};

/* Streams at most: the records of a run have room for so many workers and two spare ones. */
enum { BHI_ENGINE_STREAMS = 12 };

#endif
