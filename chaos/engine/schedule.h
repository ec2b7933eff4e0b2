/* The schedule of faults. It depends only on the seed, the kinds of faults, the number of streams
 * and the rate. */
#ifndef BHI_CHAOS_ENGINE_SCHEDULE_H
#define BHI_CHAOS_ENGINE_SCHEDULE_H

#include "chaos/engine/random.h"
#include "chaos/history/history.h"

struct bhi_scheduled {
    uint64_t number; /* from 1 */
    enum bhi_fault_kind kind;
    uint32_t stream;
    uint64_t gap_ns;   /* since the previous fault */
    uint64_t lasts_ns; /* slow, full: how long it lasts; otherwise 0 */
    /* garbage: the bytes; device: at what, and how long after it; outside: which of the workers it
     * finds */
    uint64_t salt;
};

struct bhi_schedule {
    struct bhi_random random;
    uint64_t number;
    uint64_t twice_gap_ns; /* twice the mean gap */
    uint32_t streams, fault_set;
};

/* |fault_set| must have at least one fault, |rate| must be above 0, |streams| at least 1. */
void bhi_schedule_init(struct bhi_schedule *schedule, uint64_t seed, uint32_t fault_set,
                       double rate, uint32_t streams);
struct bhi_scheduled bhi_schedule_next(struct bhi_schedule *schedule);

/* Each draws one value, as bhi_schedule_next does: a bit of |set|, as often as its share says; and how
 * long a fault lasts that has an end. */
uint32_t bhi_schedule_draw(struct bhi_random *random, const uint32_t *shares, uint32_t set);
uint64_t bhi_schedule_lasts(struct bhi_random *random);
/* Twice the mean gap, for |rate| faults a second. */
uint64_t bhi_schedule_twice_gap(double rate);

#endif
