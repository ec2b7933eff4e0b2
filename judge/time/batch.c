#include "judge/time/batch.h"

#include <math.h>

/* How long a batch should take, so that one in a few is not interrupted, also on a busy machine. */
static const double batch_ns = 6e6;

size_t bhi_batches_length(const struct bhi_series *series) {
    const double reference_ns = bhi_series_first_median(series, BHI_RACER_REFERENCE);
    const double most = (double)series->batch;
    const double fitting = reference_ns > 0 ? batch_ns / reference_ns : most;
    return (size_t)(fitting < 4 ? fmin(4, most) : fmin(fitting, most));
}

void bhi_batches_begin(size_t length, struct bhi_batches *out) {
    out->length = length;
    for (int i = 0; i < BHI_RACERS; i++) {
        out->least[i] = UINT64_MAX;
    }
}

bool bhi_batches_take(struct bhi_batches *batches, struct bhi_series *series, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct bhi_clocked clocked[BHI_RACERS] = {{0}};
        if (!bhi_round_run(&series->race, batches->length, true, 1, clocked, series->outcome)) {
            return false;
        }
        for (int k = 0; k < BHI_RACERS; k++) {
            const uint64_t host_ns = bhi_seen_ns(&clocked[k]);
            batches->least[k] = host_ns < batches->least[k] ? host_ns : batches->least[k];
        }
    }
    return true;
}

struct bhi_seen bhi_batches_seen(const struct bhi_batches *batches, const struct bhi_series *series,
                                 enum bhi_racer racer, double ratio) {
    struct bhi_seen seen = {.claim_ns = bhi_series_median(series, racer),
                            .low_ns = bhi_series_quarter(series, racer, 1),
                            .high_ns = bhi_series_quarter(series, racer, 3),
                            .group_ns = bhi_series_least_group(series, racer),
                            .batch_ns = batches->least[racer],
                            .base_ns = batches->least[BHI_RACER_BASE],
                            .runs = batches->length};
    if (racer == BHI_RACER_CANDIDATE && ratio > 0) {
        seen.claim_ns = fmin(seen.claim_ns, ratio * bhi_series_median(series, BHI_RACER_REFERENCE));
    }
    return seen;
}
