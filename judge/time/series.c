#include "judge/time/series.h"

#include <stdlib.h>

#include "judge/data/steady.h"

enum {
    BATCH = 32,    /* runs in a batch, at most */
    BUFFERS = 128, /* of one contender in a batch, at most: each is a file descriptor */
    CHECKED = 4,   /* one of so many single runs is checked */
};

static const uint64_t batch_bytes = UINT64_C(128) << 20; /* of one contender's buffers */

static size_t batch_of(const struct bhi_task *task, const struct bhi_trial *trial) {
    const uint64_t by_memory = batch_bytes / (trial->bytes + 1);
    uint64_t count = BUFFERS / task->array_count;
    count = count < BATCH ? count : BATCH;
    count = count < by_memory ? count : by_memory;
    return count > 2 ? count : 2;
}

/* The reference's worker, which runs nothing else, says whether the device has a clock. */
bool bhi_series_run_first(struct bhi_series *series) {
    struct bhi_clocked clocked[BHI_RACERS] = {{0}};
    if (!bhi_round_run(&series->race, 1, true, 1, clocked, series->outcome)) {
        return false;
    }
    series->device = clocked[BHI_RACER_REFERENCE].device_ns > 0;
    if (!series->device) {
        series->race.flush = NULL; /* the runs of a batch follow one another */
    }
    return true;
}

bool bhi_series_begin(const struct bhi_race *race, size_t count, struct bhi_judge_outcome *outcome,
                      struct bhi_series *out) {
    *out = (struct bhi_series){.race = *race,
                               .count = count,
                               .batch = batch_of(race->court->task, race->trial),
                               .outcome = outcome};
    for (int i = 0; i < BHI_RACER_BASE; i++) {
        if (!(out->times[i] = calloc(count, sizeof *out->times[i])) ||
            !(out->hosts[i] = calloc(count, sizeof *out->hosts[i]))) {
            return bhi_judge_outcome_fail(outcome, BH_NO_MEMORY, "out of memory");
        }
    }
    return bhi_series_run_first(out);
}

void bhi_series_free(struct bhi_series *series) {
    for (int i = 0; i < BHI_RACER_BASE; i++) {
        free(series->times[i]);
        free(series->hosts[i]);
    }
}

/* Without a clock of the device: a run is a part of a batch, by the host's clock, less what an
 * empty batch takes. */
static uint64_t by_host(const struct bhi_series *series, const struct bhi_clocked *clocked,
                        const struct bhi_clocked *base) {
    return clocked->host_ns > base->host_ns + series->batch
               ? (clocked->host_ns - base->host_ns) / series->batch
               : 1;
}

static bool take_one(struct bhi_series *series, size_t index) {
    struct bhi_clocked clocked[BHI_RACERS] = {{0}};
    const bool device = series->device;
    if (!bhi_round_run(&series->race, device ? 1 : series->batch, !device, device ? CHECKED : 1,
                       clocked, series->outcome)) {
        return false;
    }
    for (int i = 0; i < BHI_RACER_BASE; i++) {
        series->times[i][index] =
            device ? clocked[i].device_ns : by_host(series, &clocked[i], &clocked[BHI_RACER_BASE]);
        series->hosts[i][index] = clocked[i].host_ns;
    }
    series->unclaimed |= device && !clocked[BHI_RACER_CANDIDATE].device_ns;
    return true;
}

bool bhi_series_take(struct bhi_series *series, size_t count) {
    series->unclaimed = false;
    for (size_t i = 0; i < count; i++) {
        if (!take_one(series, i)) {
            return false;
        }
    }
    return true;
}

double bhi_series_median(const struct bhi_series *series, enum bhi_racer racer) {
    struct bhi_steadiness steadiness;
    return bhi_steadiness_of(series->times[racer], series->count, &steadiness) ? steadiness.median
                                                                               : 0;
}
