/* The schedule of faults. It depends on the seed, the kinds of faults, the number of streams and
 * the rate only. */
#ifndef BHI_CHAOS_ENGINE_SCHEDULE_H
#define BHI_CHAOS_ENGINE_SCHEDULE_H

#include "chaos/engine/random.h"
#include "chaos/history/history.h"

struct bhi_scheduled {
    uint64_t number; /* from 1 */
    enum bhi_fault_kind kind;
    uint32_t stream;
    uint64_t gap_ns;   /* after the one before */
    uint64_t lasts_ns; /* slow, full: until it is taken back; else 0 */
    uint64_t salt;     /* garbage: the bytes; outside: which of the workers that are found */
};

struct bhi_schedule {
    struct bhi_random random;
    uint64_t number;
    uint64_t twice_gap_ns; /* twice the mean gap */
    uint32_t streams;
    uint32_t kind_count, shares; /* of all of them */
    enum bhi_fault_kind kinds[BHI_FAULT_KINDS];
};

/* |fault_set| has a fault in it at least, |rate| is above 0, |streams| at least 1. */
void bhi_schedule_init(struct bhi_schedule *schedule, uint64_t seed, uint32_t fault_set,
                       double rate, uint32_t streams);
struct bhi_scheduled bhi_schedule_next(struct bhi_schedule *schedule);

#endif
