#include "judge/time/bound.h"

/* Which part of the host's time claims must explain at least. The same kernel's claims in single
 * runs and its time in batches differ: batches warm the caches, and have no gaps. */
static const double least = 0.75;
/* Of a busy machine, on which even the reference's claims explain less than half: only what they
 * explain four times better is certain. */
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

/* Which part of the host's time the claims explain; |unknown| if that time is not known. */
static double explained(const struct bhi_seen *seen, double unknown) {
    const double run_ns = bhi_seen_run_ns(seen);
    return run_ns > 0 ? seen->claim_ns / run_ns : unknown;
}

enum bhi_honesty bhi_honesty_of(const struct bhi_seen *candidate,
                                const struct bhi_seen *reference) {
    const double part = explained(candidate, 1), usual = explained(reference, 1);
    const double due = usual < 1 ? usual : 1;
    if (usual < least_reference) {
        return part < least_busy * due ? BHI_FORGED : BHI_UNSURE;
    }
    return part < least * due ? BHI_FORGED : BHI_HONEST;
}
