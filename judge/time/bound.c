#include "judge/time/bound.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "judge/data/ratio.h"

/* Which part of the host's time claims must explain at least. The same kernel's claims in single
 * runs and its time in batches differ: batches warm the caches, and have no gaps. */
static const double least = 0.75;
/* Of a busy machine, on which even the reference's claims explain less than half: only what they
 * explain four times better is certain. Between both, as far as they explain all. */
static const double least_reference = 0.5, least_busy = 0.25;
/* A batch that is longer than an empty one by less than this, or than half of the empty one, is as
 * long by chance. */
static const uint64_t least_difference_ns = 50000;

double bhi_seen_run_ns(const struct bhi_seen *seen) {
    if (seen->batch_ns <= seen->base_ns + least_difference_ns ||
        seen->batch_ns <= seen->base_ns + seen->base_ns / 2) {
        return 0;
    }
    return (double)(seen->batch_ns - seen->base_ns) / (double)seen->runs;
}

/* Which part of the host's time a claim explains; 1 if that time is not known. */
static double explained(const struct bhi_seen *seen, double claim_ns) {
    const double run_ns = bhi_seen_run_ns(seen);
    return run_ns > 0 ? claim_ns / run_ns : 1;
}

/* What the reference's claims, and those of its shortest group, explain. */
struct yardstick {
    double usual, group;
};

static struct yardstick yardstick_of(const struct bhi_seen *reference) {
    const double usual = fmin(explained(reference, reference->claim_ns), 1);
    return (struct yardstick){usual, fmin(explained(reference, reference->group_ns), usual)};
}

static bool lacks(const struct bhi_seen *candidate, const struct yardstick *yardstick) {
    return explained(candidate, candidate->claim_ns) < least * yardstick->usual ||
           explained(candidate, candidate->group_ns) <
               least * fmax(yardstick->group, least_reference);
}

enum bhi_honesty bhi_honesty_of(const struct bhi_seen *candidate,
                                const struct bhi_seen *reference) {
    const struct yardstick yardstick = yardstick_of(reference);
    const double quick = fmin(explained(reference, reference->low_ns), 1);
    const double quiet = fmax(quick - least_reference, 0) / (1 - least_reference);
    const double certain = least_busy + quiet * (least - least_busy);
    if (explained(candidate, candidate->high_ns) < certain * quick) {
        return BHI_FORGED;
    }
    return yardstick.usual < least_reference || lacks(candidate, &yardstick) ? BHI_UNSURE
                                                                             : BHI_HONEST;
}

enum bhi_honesty bhi_honesty_beside(const struct bhi_seen *candidate,
                                    const struct bhi_seen *reference,
                                    const struct bhi_seen *alone) {
    const enum bhi_honesty honesty = bhi_honesty_of(candidate, reference);
    const struct yardstick yardstick = yardstick_of(alone);
    const bool known = bhi_seen_run_ns(alone) > 0;
    return honesty == BHI_HONEST && known && lacks(candidate, &yardstick) ? BHI_UNSURE : honesty;
}

/* -- single runs ----------------------------------------------------------------------------- */

enum { MANY_RUNS = 20 };

static const double least_part = 0.05, least_ns = 100000, least_spreads = 2;

bool bhi_overhead_of(const uint64_t *hosts, const uint64_t *claims, size_t count,
                     struct bhi_overhead *out) {
    uint64_t *room = calloc(count, sizeof *room);
    if (!room) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        room[i] = hosts[i];
    }
    out->count = count;
    out->host_ns = bhi_median_of(room, count);
    for (size_t i = 0; i < count; i++) {
        room[i] = hosts[i] > claims[i] ? hosts[i] - claims[i] : 0;
    }
    out->median_ns = bhi_median_of(room, count); /* which sorts them */
    const size_t quarter = count / 4;
    out->low_ns = (double)room[quarter];
    const size_t tenth = count / 10;
    out->spread_ns = (double)(room[count - 1 - tenth] - room[tenth]);
    free(room);
    return true;
}

double bhi_overhead_allowed(const struct bhi_overhead *overhead, const struct bhi_overhead *usual) {
    const size_t runs = overhead->count < usual->count ? overhead->count : usual->count;
    const double few = runs < MANY_RUNS ? (double)MANY_RUNS / (double)runs : 1;
    return fmax(fmax(least_part * overhead->host_ns, least_ns),
                few * least_spreads * usual->spread_ns);
}

bool bhi_overhead_exceeds(const struct bhi_overhead *overhead, const struct bhi_overhead *usual) {
    return overhead->median_ns > usual->median_ns + bhi_overhead_allowed(overhead, usual);
}

enum bhi_honesty bhi_overhead_honesty(const struct bhi_overhead *overhead,
                                      const struct bhi_overhead *usual) {
    if (overhead->low_ns > usual->median_ns + bhi_overhead_allowed(overhead, usual)) {
        return BHI_FORGED;
    }
    return bhi_overhead_exceeds(overhead, usual) ? BHI_UNSURE : BHI_HONEST;
}

/* By how much those of a group are longer, at most. */
static bool find_longest(const struct bhi_overhead_runs *runs,
                         const struct bhi_overhead_runs *usual, size_t count, size_t groups,
                         double *out_ns) {
    *out_ns = -INFINITY;
    for (size_t i = 0; i < groups; i++) {
        const size_t begin = bhi_group_begin(count, groups, i);
        const size_t length = bhi_group_begin(count, groups, i + 1) - begin;
        struct bhi_overhead one, other;
        if (!bhi_overhead_of(runs->hosts + begin, runs->claims + begin, length, &one) ||
            !bhi_overhead_of(usual->hosts + begin, usual->claims + begin, length, &other)) {
            return false;
        }
        *out_ns = fmax(*out_ns, one.median_ns - other.median_ns);
    }
    return true;
}

bool bhi_overhead_judge(const struct bhi_overhead_runs *runs, const struct bhi_overhead_runs *usual,
                        size_t count, size_t groups, const struct bhi_overhead *alone,
                        struct bhi_overhead_verdict *out) {
    struct bhi_overhead one, other;
    double longest_ns;
    if (!bhi_overhead_of(runs->hosts, runs->claims, count, &one) ||
        !bhi_overhead_of(usual->hosts, usual->claims, count, &other)) {
        return false;
    }
    struct bhi_overhead steady = other;
    steady.spread_ns = fmin(other.spread_ns, alone->spread_ns);
    if (!find_longest(runs, usual, count, groups, &longest_ns)) {
        return false;
    }
    *out = (struct bhi_overhead_verdict){.honesty = bhi_overhead_honesty(&one, &other),
                                         .run_ns = one.host_ns - other.median_ns};
    if (out->honesty == BHI_HONEST && longest_ns > bhi_overhead_allowed(&one, &other)) {
        out->honesty = BHI_UNSURE;
    }
    if (out->honesty == BHI_HONEST &&
        (longest_ns > bhi_overhead_allowed(&one, &steady) || bhi_overhead_exceeds(&one, &steady))) {
        out->honesty = BHI_UNSURE;
        out->only_alone = true;
    }
    return true;
}
