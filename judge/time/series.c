#include "judge/time/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/data/ratio.h"
#include "judge/time/round.h"

enum {
    BATCH = 32, /* runs in a batch, at most */
    BATCH_LEAST = 2,
    ARRAYS = 128, /* of one contender in a batch, at most */
    CHECKED = 4,  /* one of so many single runs is checked */
    GROUPS = 8,   /* at least, if there are as many rounds */
    GROUP = 6,    /* rounds in a group, at most, until there are as many groups as can be */
    /* Rounds of fresh workers that do not count: until threads have found a processor each, and
     * where there is one, until caches are as they will be. */
    SETTLE = 8,
    SETTLE_ON_ONE = 2,
};

/* Of one contender's buffers, in the host's memory or a device's. */
static const uint64_t host_bytes = UINT64_C(32) << 20, device_bytes = UINT64_C(128) << 20;

static size_t batch_of(const struct bhi_race *race) {
    const struct bhi_task *task = race->court->task;
    const uint64_t bytes = race->on_processor ? host_bytes : device_bytes;
    const uint64_t by_memory = bytes / (race->trial->bytes + 1);
    uint64_t count = ARRAYS / task->array_count;
    count = count < BATCH ? count : BATCH;
    count = count < by_memory ? count : by_memory;
    return count > BATCH_LEAST ? count : BATCH_LEAST;
}

static size_t groups_of(size_t count) {
    const size_t least = count < GROUPS ? count : GROUPS, fitting = count / GROUP;
    const size_t groups = fitting > least ? fitting : least;
    return groups < BHI_RATIO_GROUPS_MOST ? groups : BHI_RATIO_GROUPS_MOST;
}

static void open_rehearsal(struct bhi_series *series) {
    bhi_material_open(series->race.court, series->race.trial, &series->rehearsal);
}

/* Takes rounds that do not count, or, with |rehearse| false, those that do. Where arrays are large, what
 * the former read is made again rather than kept. */
static void rehearse(struct bhi_series *series, bool rehearse) {
    series->race.rehearsal = rehearse ? &series->rehearsal : NULL;
    if (!rehearse && series->batch == BATCH_LEAST) {
        bhi_material_close(&series->rehearsal);
        open_rehearsal(series);
    }
}

/* The reference's worker, which runs nothing else, says whether the device has a clock. */
static bool run_first(struct bhi_series *series) {
    struct bhi_clocked clocked[BHI_RACERS] = {{0}};
    rehearse(series, true);
    const bool good = bhi_round_run(&series->race, 1, true, 1, clocked, series->outcome);
    rehearse(series, false);
    if (!good) {
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
                               .groups = groups_of(count),
                               .batch = batch_of(race),
                               .outcome = outcome};
    open_rehearsal(out);
    bhi_material_open(race->court, race->trial, &out->material);
    out->race.material = &out->material;
    out->race.slots = out->batch;
    for (int i = 0; i < BHI_RACER_BASE; i++) {
        if (!(out->times[i] = calloc(count, sizeof *out->times[i])) ||
            !(out->hosts[i] = calloc(count, sizeof *out->hosts[i]))) {
            return bhi_judge_outcome_memory(outcome);
        }
    }
    return run_first(out);
}

void bhi_series_free(struct bhi_series *series) {
    for (int i = 0; i < BHI_RACER_BASE; i++) {
        free(series->times[i]);
        free(series->hosts[i]);
    }
    bhi_material_close(&series->rehearsal);
    bhi_material_close(&series->material);
}

uint64_t bhi_seen_ns(const struct bhi_clocked *clocked) {
    return clocked->work_ns ? clocked->work_ns : clocked->host_ns;
}

/* What is claimed of a run. The device of a worker on one processor is that processor: while others
 * had it, no kernel ran. */
static uint64_t claim_of(const struct bhi_clocked *clocked) {
    return clocked->work_ns && clocked->work_ns < clocked->device_ns ? clocked->work_ns
                                                                     : clocked->device_ns;
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
            device ? claim_of(&clocked[i]) : by_host(series, &clocked[i], &clocked[BHI_RACER_BASE]);
        series->hosts[i][index] = bhi_seen_ns(&clocked[i]);
    }
    series->unclaimed |= device && !clocked[BHI_RACER_CANDIDATE].device_ns;
    return true;
}

static bool take_some(struct bhi_series *series, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) {
        if (!take_one(series, i)) {
            return false;
        }
    }
    return true;
}

bool bhi_series_warm(struct bhi_series *series, size_t count) {
    rehearse(series, true);
    const bool good = take_some(series, 0, count);
    rehearse(series, false);
    return good;
}

bool bhi_series_renew_one(struct bhi_series *series, enum bhi_racer racer) {
    struct bhi_race *race = &series->race;
    race->running = racer;
    return !race->contenders[racer] ||
           bhi_contender_renew(race->court, race->contenders[racer], series->outcome);
}

/* Who begins changes as in a round. What does not count is where the first that counts will be. */
bool bhi_series_renew(struct bhi_series *series, size_t group) {
    const size_t begin = bhi_group_begin(series->count, series->groups, group);
    for (size_t i = 0; i < BHI_RACER_BASE; i++) {
        if (!bhi_series_renew_one(series, (enum bhi_racer)bhi_turn_of(group, i, BHI_RACER_BASE))) {
            return false;
        }
    }
    bool good = run_first(series);
    const int settle = series->race.court->processor ? SETTLE_ON_ONE : SETTLE;
    const int rounds = series->device ? settle : 1; /* a batch is many runs */
    rehearse(series, true);
    for (int i = 0; i < rounds && good; i++) {
        good = take_one(series, begin);
    }
    rehearse(series, false);
    return good;
}

bool bhi_series_take(struct bhi_series *series, size_t group) {
    series->unclaimed = group > 0 && series->unclaimed;
    return take_some(series, bhi_group_begin(series->count, series->groups, group),
                     bhi_group_begin(series->count, series->groups, group + 1));
}

/* The median of |count| times from |begin| on. */
static double median_from(const struct bhi_series *series, enum bhi_racer racer, size_t begin,
                          size_t count) {
    struct bhi_steadiness steadiness;
    return bhi_steadiness_of(series->times[racer] + begin, count, 1, &steadiness)
               ? steadiness.median
               : 0;
}

static double group_median(const struct bhi_series *series, enum bhi_racer racer, size_t group) {
    const size_t begin = bhi_group_begin(series->count, series->groups, group);
    return median_from(series, racer, begin,
                       bhi_group_begin(series->count, series->groups, group + 1) - begin);
}

double bhi_series_median(const struct bhi_series *series, enum bhi_racer racer) {
    return median_from(series, racer, 0, series->count);
}

/* Of the first group. */
static double first_median(const struct bhi_series *series, enum bhi_racer racer) {
    return group_median(series, racer, 0);
}

/* The time than which |quarter| of four are shorter or as long, 1 or 3. */
static double quarter(const struct bhi_series *series, enum bhi_racer racer, int quarter) {
    const size_t count = series->count;
    uint64_t *room = calloc(count, sizeof *room);
    double time = 0;
    if (room) {
        memcpy(room, series->times[racer], count * sizeof *room);
        (void)bhi_median_of(room, count); /* which sorts them */
        time = (double)room[quarter == 1 ? count / 4 : count - 1 - count / 4];
    }
    free(room);
    return time;
}

/* The shortest median of a group. */
static double least_group(const struct bhi_series *series, enum bhi_racer racer) {
    double least = group_median(series, racer, 0);
    for (size_t i = 1; i < series->groups; i++) {
        least = fmin(least, group_median(series, racer, i));
    }
    return least;
}

/* -- batches --------------------------------------------------------------------------------- */

/* How long a batch should take, so that one in a few is not interrupted, also on a busy machine. */
static const double batch_ns = 6e6;

size_t bhi_batches_length(const struct bhi_series *series) {
    const double reference_ns = first_median(series, BHI_RACER_REFERENCE);
    const double most = (double)series->batch;
    const double fitting = reference_ns > 0 ? batch_ns / reference_ns : most;
    return (size_t)fmin(fmax(fitting, BATCH_LEAST), most);
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
                            .low_ns = quarter(series, racer, 1),
                            .high_ns = quarter(series, racer, 3),
                            .group_ns = least_group(series, racer),
                            .batch_ns = batches->least[racer],
                            .base_ns = batches->least[BHI_RACER_BASE],
                            .runs = batches->length};
    if (racer == BHI_RACER_CANDIDATE && ratio > 0) {
        seen.claim_ns = fmin(seen.claim_ns, ratio * bhi_series_median(series, BHI_RACER_REFERENCE));
    }
    return seen;
}
