#include "judge/time/bound.h"

#include <math.h>
#include <stdbool.h>

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
