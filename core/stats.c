#include "core/stats.h"

#define BH_STATUS(name, value, ...) _Static_assert((value) < BH_STATUSES, #name);
#include "base/status.def"
#undef BH_STATUS

#define FIRST_BITS 10u /* of the first bucket's limit */

static void note(bh_histogram *histogram, uint64_t ns) {
    uint32_t bucket = 0;
    if (ns > 1u << FIRST_BITS) {
        bucket = 64u - (uint32_t)__builtin_clzll(ns - 1) - FIRST_BITS;
    }
    histogram->counts[bucket < BH_BUCKETS ? bucket : BH_BUCKETS - 1]++;
    histogram->sum_ns += ns;
}

/* The worker has said when it began and ended: the time may not run backwards. */
static uint64_t between(uint64_t from_ns, uint64_t to_ns) {
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

void bhi_stats_ended(struct bhi_stats *stats, const bh_verdict *verdict) {
    if (verdict->hops && verdict->status != BH_STREAM_FAILED) {
        stats->dependents++;
    } else {
        stats->ended[verdict->status]++;
    }
    if (verdict->started_ns) {
        note(&stats->wait, between(verdict->submitted_ns, verdict->started_ns));
        note(&stats->run, between(verdict->started_ns, verdict->ended_ns));
    }
}

void bhi_stats_add(struct bhi_stats *sum, const struct bhi_stats *more) {
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)more;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) {
        to[i] += from[i];
    }
}
