#include "judge/time/alone.h"

#include <math.h>

enum { GROUPS = 5 }; /* with workers of their own; there is no ratio to be known */

static const double limit = 0.05;

bool bhi_alone_of(const struct bhi_series *series, struct bhi_alone *out) {
    const uint64_t *times = series->times[BHI_RACER_REFERENCE];
    *out = (struct bhi_alone){.steadiness.median = 0};
    return bhi_steadiness_of(times, series->count, series->groups, &out->steadiness) &&
           (!series->device || bhi_overhead_of(series->hosts[BHI_RACER_REFERENCE], times,
                                               series->count, &out->overhead));
}

/* The groups, each with fresh workers, and a batch of each. */
static bool take(struct bhi_series *series, struct bhi_batches *batches) {
    for (size_t i = 0; i < series->groups; i++) {
        if (!bhi_series_renew(series, i) || !bhi_series_take(series, i)) {
            return false;
        }
        if (!i) {
            bhi_batches_begin(bhi_batches_length(series), batches);
        }
        if (series->device && !bhi_batches_take(batches, series, 1)) {
            return false;
        }
    }
    return true;
}

bool bhi_alone_measure(const struct bhi_race *race, size_t count, struct bhi_alone *out,
                       struct bhi_judge_outcome *outcome) {
    struct bhi_series series;
    struct bhi_batches batches;
    bh_judgement itself = {.verdict = BH_JUDGE_CORRECT};
    struct bhi_race alone = *race;
    alone.judgement = &itself;
    bool good = bhi_series_begin(&alone, count, outcome, &series);
    series.groups = count < GROUPS ? count : GROUPS;
    good = good && take(&series, &batches);
    const bool known = good && bhi_alone_of(&series, out);
    if (known && series.device) {
        out->seen = bhi_batches_seen(&batches, &series, BHI_RACER_REFERENCE, 0);
    }
    if (series.race.wrong) {
        bhi_judge_outcome_fail(outcome, BH_INVALID_ARGUMENT,
                               "the reference does not compute the same each time: %.300s",
                               itself.message);
    } else if (good && !known) {
        bhi_judge_outcome_memory(outcome);
    }
    bhi_series_free(&series);
    return known;
}

bool bhi_alone_was_faster(const struct bhi_alone *alone, const struct bhi_alone *beside) {
    return bhi_steadiness_is_slower(&beside->steadiness, &alone->steadiness, limit) ||
           bhi_overhead_exceeds(&beside->overhead, &alone->overhead);
}

void bhi_alone_lower(struct bhi_alone *alone, const struct bhi_alone *beside) {
    if (beside->steadiness.median < alone->steadiness.median) {
        alone->steadiness = beside->steadiness;
    }
    const double spread_ns = alone->overhead.spread_ns; /* others can make it more */
    if (beside->overhead.median_ns < alone->overhead.median_ns) {
        alone->overhead = beside->overhead;
        alone->overhead.spread_ns = fmin(alone->overhead.spread_ns, spread_ns);
    }
}
