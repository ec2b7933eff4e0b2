#include "chaos/engine/schedule.h"

#define MS 1000000ull

/* The longest time for which a worker is stopped or the table is full: much shorter than every
 * deadline. */
static const uint64_t longest_ns = 200 * MS;

/* How often each kind comes. A kind that costs a stream seconds is rarer than one that costs it
 * milliseconds; otherwise it would take most of the time. */
static const uint32_t shares[BHI_FAULT_KINDS] = {
    [BHI_FAULT_KILL] = 5,    [BHI_FAULT_SEGV] = 4,   [BHI_FAULT_STOP] = 1,
    [BHI_FAULT_HANG] = 2,    [BHI_FAULT_OOM] = 1,    [BHI_FAULT_GARBAGE] = 2,
    [BHI_FAULT_CLOSE] = 1,   [BHI_FAULT_ZYGOTE] = 1, [BHI_FAULT_SLOW] = 3,
    [BHI_FAULT_FULL] = 1,    [BHI_FAULT_DEVICE] = 5, [BHI_FAULT_UNGUARDED] = 1,
    [BHI_FAULT_ILLEGAL] = 2,
};

void bhi_schedule_init(struct bhi_schedule *schedule, uint64_t seed, uint32_t fault_set,
                       double rate, uint32_t streams) {
    *schedule = (struct bhi_schedule){.streams = streams};
    bhi_random_seed(&schedule->random, seed, 0);
    const double twice = 2e9 / rate;
    schedule->twice_gap_ns = twice < 1e18 ? (uint64_t)twice : (uint64_t)1e18;
    for (uint32_t kind = 0; kind < BHI_FAULT_KINDS; kind++) {
        if (!(fault_set & 1u << kind)) {
            continue;
        }
        schedule->kinds[schedule->kind_count++] = (enum bhi_fault_kind)kind;
        schedule->shares += shares[kind];
    }
}

static enum bhi_fault_kind draw_kind(struct bhi_schedule *schedule) {
    uint32_t share = (uint32_t)bhi_random_below(&schedule->random, schedule->shares), i = 0;
    while (share >= shares[schedule->kinds[i]]) {
        share -= shares[schedule->kinds[i++]];
    }
    return schedule->kinds[i];
}

/* Draws the same number of values for each kind, so that no fault shifts the later ones. */
struct bhi_scheduled bhi_schedule_next(struct bhi_schedule *schedule) {
    struct bhi_random *random = &schedule->random;
    struct bhi_scheduled next = {.number = ++schedule->number};
    next.kind = draw_kind(schedule);
    next.stream = (uint32_t)bhi_random_below(random, schedule->streams);
    next.gap_ns = bhi_random_below(random, schedule->twice_gap_ns + 1);
    const uint64_t lasts_ns = MS + bhi_random_below(random, longest_ns - MS + 1);
    next.lasts_ns = next.kind == BHI_FAULT_SLOW || next.kind == BHI_FAULT_FULL ? lasts_ns : 0;
    next.salt = bhi_random_next(random);
    return next;
}
