#include "chaos/engine/schedule.h"

#define MS 1000000ull

/* The longest time for which a worker is stopped or the table is full: much shorter than every
 * deadline. */
static const uint64_t longest_ns = 200 * MS;

/* How often each kind comes. A kind that costs a stream seconds is rarer than one that costs it
 * milliseconds; otherwise it would take most of the time. */
static const uint32_t fault_shares[BHI_FAULT_KINDS] = {
    [BHI_FAULT_KILL] = 5,    [BHI_FAULT_SEGV] = 4,   [BHI_FAULT_STOP] = 1,
    [BHI_FAULT_HANG] = 2,    [BHI_FAULT_OOM] = 1,    [BHI_FAULT_GARBAGE] = 2,
    [BHI_FAULT_CLOSE] = 1,   [BHI_FAULT_ZYGOTE] = 1, [BHI_FAULT_SLOW] = 3,
    [BHI_FAULT_FULL] = 1,    [BHI_FAULT_DEVICE] = 5, [BHI_FAULT_UNGUARDED] = 1,
    [BHI_FAULT_ILLEGAL] = 2,
};

uint64_t bhi_schedule_twice_gap(double rate) {
    const double twice = 2e9 / rate;
    return twice < 1e18 ? (uint64_t)twice : (uint64_t)1e18;
}

uint32_t bhi_schedule_draw(struct bhi_random *random, const uint32_t *shares, uint32_t set) {
    uint32_t all = 0;
    for (uint32_t rest = set; rest; rest &= rest - 1) {
        all += shares[__builtin_ctz(rest)];
    }
    uint32_t share = (uint32_t)bhi_random_below(random, all);
    while (share >= shares[__builtin_ctz(set)]) {
        share -= shares[__builtin_ctz(set)];
        set &= set - 1;
    }
    return (uint32_t)__builtin_ctz(set);
}

uint64_t bhi_schedule_lasts(struct bhi_random *random) {
    return MS + bhi_random_below(random, longest_ns - MS + 1);
}

void bhi_schedule_init(struct bhi_schedule *schedule, uint64_t seed, uint32_t fault_set,
                       double rate, uint32_t streams) {
    *schedule = (struct bhi_schedule){.streams = streams, .fault_set = fault_set};
    bhi_random_seed(&schedule->random, seed, 0);
    schedule->twice_gap_ns = bhi_schedule_twice_gap(rate);
}

/* Draws the same number of values for each kind, so that no fault shifts the later ones. */
struct bhi_scheduled bhi_schedule_next(struct bhi_schedule *schedule) {
    struct bhi_random *random = &schedule->random;
    struct bhi_scheduled next = {.number = ++schedule->number};
    next.kind = (enum bhi_fault_kind)bhi_schedule_draw(random, fault_shares, schedule->fault_set);
    next.stream = (uint32_t)bhi_random_below(random, schedule->streams);
    next.gap_ns = bhi_random_below(random, schedule->twice_gap_ns + 1);
    const uint64_t lasts_ns = bhi_schedule_lasts(random);
    next.lasts_ns = next.kind == BHI_FAULT_SLOW || next.kind == BHI_FAULT_FULL ? lasts_ns : 0;
    next.salt = bhi_random_next(random);
    return next;
}
