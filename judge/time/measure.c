#include "judge/time/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/data/ratio.h"
#include "judge/data/steady.h"
#include "judge/time/bound.h"
#include "judge/time/slower.h"

enum {
    WINDOW = 10,   /* runs of the warm-up between two looks at the noise */
    WINDOWS = 5,   /* at most */
    ATTEMPTS = 3,  /* of a measurement that cannot be used; of a run that others may have ended */
    BATCHES = 8,   /* that the host measures at first; the shortest counts */
    DOUBT = 4,     /* and so many times as many in each later attempt */
    BATCH = 32,    /* runs in a batch, at most */
    BUFFERS = 128, /* of one contender in a batch, at most: each is a file descriptor */
    CHECKED = 4,   /* one of so many single runs is checked */
};

static const uint64_t batch_bytes = UINT64_C(128) << 20; /* of one contender's buffers */
/* How long a batch should take, so that one in a few is not interrupted, also on a busy machine. */
static const double batch_ns = 6e6;
static const double noise_limit = 0.005, drift_limit = 0.05;

/* The times of one measurement. */
struct times {
    uint64_t *of[BHI_RACER_BASE]; /* |count| each; owned */
    size_t count;
};

/* One size of one candidate. */
struct measuring {
    struct bhi_timekeeper *timer;
    struct bhi_race race;
    struct bhi_timing *out;
    struct times times;
    size_t batch;   /* runs in a batch, at most */
    int batches;    /* that the host measures */
    bool device;    /* the workers claim times of the device */
    bool unclaimed; /* the candidate's does not, and the reference's does */
    struct bhi_judge_outcome *outcome;
};

/* -- the timer ---------------------------------------------------------------------------------
 */

bool bhi_timekeeper_open(struct bhi_court *court, const struct bhi_timing_options *options,
                         struct bhi_timekeeper *out, struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_timekeeper){.court = court, .options = *options};
    const bool good = bhi_contender_open_reference(court, &out->reference, outcome) &&
                      bhi_base_open(court, &out->base, outcome) &&
                      (options->warm || bhi_flush_open(court, &out->flush, outcome));
    if (!good) {
        bhi_timekeeper_close(out);
    }
    return good;
}

void bhi_timekeeper_close(struct bhi_timekeeper *timer) {
    bhi_contender_close(&timer->reference);
    bhi_base_close(&timer->base);
    bhi_flush_close(&timer->flush);
}

/* -- single times -------------------------------------------------------------------------------
 */

static bool allocate(struct measuring *m, size_t count) {
    m->times.count = count;
    for (int i = 0; i < BHI_RACER_BASE; i++) {
        if (!(m->times.of[i] = calloc(count, sizeof *m->times.of[i]))) {
            return bhi_judge_outcome_fail(m->outcome, BH_NO_MEMORY, "out of memory");
        }
    }
    return true;
}

static void release(struct measuring *m) {
    for (int i = 0; i < BHI_RACER_BASE; i++) {
        free(m->times.of[i]);
    }
}

/* Without a clock of the device: a run is a part of a batch, by the host's clock, less what an
 * empty batch takes. */
static uint64_t by_host(const struct measuring *m, const struct bhi_clocked *clocked,
                        const struct bhi_clocked *base) {
    return clocked->host_ns > base->host_ns + m->batch
               ? (clocked->host_ns - base->host_ns) / m->batch
               : 1;
}

/* One time of each contender. */
static bool take_times(struct measuring *m, size_t index) {
    struct bhi_clocked clocked[BHI_RACERS] = {{0}};
    if (!bhi_round_run(&m->race, m->device ? 1 : m->batch, !m->device, m->device ? CHECKED : 1,
                       clocked, m->outcome)) {
        return false;
    }
    for (int i = 0; i < BHI_RACER_BASE; i++) {
        m->times.of[i][index] =
            m->device ? clocked[i].device_ns : by_host(m, &clocked[i], &clocked[BHI_RACER_BASE]);
    }
    m->unclaimed |= m->device && !clocked[BHI_RACER_CANDIDATE].device_ns;
    return true;
}

/* The first run: compiles, and shows whether the device has a clock. The reference's worker says
 * so, which runs nothing else. */
static bool run_first(struct measuring *m) {
    struct bhi_clocked clocked[BHI_RACERS] = {{0}};
    if (!bhi_round_run(&m->race, 1, true, 1, clocked, m->outcome)) {
        return false;
    }
    m->device = clocked[BHI_RACER_REFERENCE].device_ns > 0;
    if (!m->device) {
        m->race.flush = NULL; /* the runs of a batch follow one another */
    }
    return true;
}

static bool warm_up(struct measuring *m) {
    const size_t window = m->times.count < WINDOW ? m->times.count : WINDOW;
    const int windows = m->device ? WINDOWS : 1; /* batches of runs warm it sooner */
    for (int i = 0; i < windows; i++) {
        struct bhi_steadiness steadiness;
        for (size_t k = 0; k < window; k++) {
            if (!take_times(m, k)) {
                return false;
            }
        }
        if (!bhi_steadiness_of(m->times.of[BHI_RACER_REFERENCE], window, &steadiness)) {
            return bhi_judge_outcome_fail(m->outcome, BH_NO_MEMORY, "out of memory");
        }
        if (steadiness.noise <= noise_limit && steadiness.drift <= noise_limit) {
            break;
        }
    }
    return true;
}

/* -- what the host sees -------------------------------------------------------------------------
 */

static double median_of(const struct measuring *m, enum bhi_racer racer) {
    struct bhi_steadiness steadiness;
    return bhi_steadiness_of(m->times.of[racer], m->times.count, &steadiness) ? steadiness.median
                                                                              : 0;
}

/* How many runs the host measures at once, by the reference's claims. */
static size_t batch_length(const struct measuring *m) {
    const double reference_ns = median_of(m, BHI_RACER_REFERENCE);
    const double fitting = reference_ns > 0 ? batch_ns / reference_ns : (double)m->batch;
    return fitting < 4                  ? (m->batch < 4 ? m->batch : 4)
           : fitting < (double)m->batch ? (size_t)fitting
                                        : m->batch;
}

/* Measures batches of |length| runs. The shortest of each racer counts. */
static bool measure_batches(struct measuring *m, size_t length, struct bhi_seen out[2]) {
    uint64_t least[BHI_RACERS] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    for (int i = 0; i < m->batches; i++) {
        struct bhi_clocked clocked[BHI_RACERS] = {{0}};
        if (!bhi_round_run(&m->race, length, true, 1, clocked, m->outcome)) {
            return false;
        }
        for (int k = 0; k < BHI_RACERS; k++) {
            least[k] = clocked[k].host_ns < least[k] ? clocked[k].host_ns : least[k];
        }
    }
    for (int i = 0; i < 2; i++) {
        out[i] = (struct bhi_seen){.claim_ns = median_of(m, (enum bhi_racer)i),
                                   .batch_ns = least[i],
                                   .base_ns = least[BHI_RACER_BASE],
                                   .runs = length};
    }
    return true;
}

/* Compares batches with what was claimed. Where the host cannot see one of the two beside what an
 * empty batch takes, which is long on a busy machine, it measures longer ones. */
static bool bound(struct measuring *m, enum bhi_honesty *out_honesty) {
    struct bhi_seen seen[2];
    size_t length = batch_length(m);
    if (!measure_batches(m, length, seen)) {
        return false;
    }
    while (length < m->batch && (bhi_seen_run_ns(&seen[BHI_RACER_CANDIDATE]) <= 0 ||
                                 bhi_seen_run_ns(&seen[BHI_RACER_REFERENCE]) <= 0)) {
        length = 4 * length < m->batch ? 4 * length : m->batch;
        if (!measure_batches(m, length, seen)) {
            return false;
        }
    }
    m->out->host_ns = bhi_seen_run_ns(&seen[BHI_RACER_CANDIDATE]);
    *out_honesty = m->unclaimed
                       ? BHI_FORGED
                       : bhi_honesty_of(&seen[BHI_RACER_CANDIDATE], &seen[BHI_RACER_REFERENCE]);
    return true;
}

/* -- one measurement ----------------------------------------------------------------------------
 */

static bool conclude(struct measuring *m, bool drifts) {
    struct bhi_timing *out = m->out;
    struct bhi_ratio ratio;
    out->runs = m->times.count;
    out->device = m->device;
    out->cold = !!m->race.flush;
    out->median_ns = median_of(m, BHI_RACER_CANDIDATE);
    out->reference_ns = median_of(m, BHI_RACER_REFERENCE);
    out->noisy = out->noise > noise_limit;
    const double trusted = median_of(m, BHI_RACER_TRUSTED);
    out->guard_ratio = trusted > 0 ? out->median_ns / trusted : 0;
    out->ratio = out->low = out->high = 0;
    if (drifts) {
        return true;
    }
    if (bhi_ratio_of(m->times.of[BHI_RACER_CANDIDATE], m->times.of[BHI_RACER_REFERENCE],
                     m->times.count, m->race.court->noise_seed, &ratio)) {
        out->ratio = ratio.ratio;
        out->low = ratio.low;
        out->high = ratio.high;
    }
    return true;
}

/* Measures once. *out_again: it cannot be used. */
static bool measure_once(struct measuring *m, enum bhi_honesty *out_claims, bool *out_again) {
    struct bhi_steadiness steadiness;
    m->unclaimed = false;
    for (size_t i = 0; i < m->times.count; i++) {
        if (!take_times(m, i)) {
            return false;
        }
    }
    *out_claims = BHI_HONEST;
    if (m->device && !bound(m, out_claims)) {
        return false;
    }
    if (!bhi_steadiness_of(m->times.of[BHI_RACER_REFERENCE], m->times.count, &steadiness)) {
        return bhi_judge_outcome_fail(m->outcome, BH_NO_MEMORY, "out of memory");
    }
    m->out->noise = steadiness.noise;
    m->out->drift = steadiness.drift;
    const bool drifts = bhi_steadiness_drifts(&steadiness, drift_limit);
    *out_again = drifts || *out_claims != BHI_HONEST;
    return conclude(m, drifts);
}

static void forge(struct measuring *m) {
    struct bhi_candidate *candidate = m->race.candidate;
    char size[BHI_SIZE_TEXT];
    candidate->judgement = BHI_JUDGED_FORGED;
    candidate->trial = m->race.trial;
    bhi_task_size_text(m->race.court->task, m->race.trial->size, size);
    if (m->unclaimed) {
        snprintf(candidate->outcome.message, sizeof candidate->outcome.message,
                 "its worker claims that the device has no clock (%s)", size);
    } else {
        snprintf(candidate->outcome.message, sizeof candidate->outcome.message,
                 "its worker claims %.3f us for a run, and the host saw %.3f us (%s)",
                 m->out->median_ns / 1e3, m->out->host_ns / 1e3, size);
    }
    m->out->ratio = m->out->low = m->out->high = 0;
}

/* Measures until it can be used. A claim is called false only if each measurement finds it so; the
 * more batches there are, the less the shortest of them owes to other load on the machine. */
static bool measure(struct measuring *m) {
    int forged = 0;
    bool again = true;
    m->batches = BATCHES;
    for (int i = 0; i < ATTEMPTS && again; i++, m->batches *= DOUBT) {
        enum bhi_honesty claims;
        if (!measure_once(m, &claims, &again)) {
            return false;
        }
        forged += claims == BHI_FORGED;
    }
    if (forged == ATTEMPTS) {
        forge(m);
    } else if (again) {
        m->out->ratio = m->out->low = m->out->high = 0;
    }
    return true;
}

static size_t batch_of(const struct bhi_task *task, const struct bhi_trial *trial) {
    const uint64_t by_memory = batch_bytes / (trial->bytes + 1);
    uint64_t count = BUFFERS / task->array_count;
    count = count < BATCH ? count : BATCH;
    count = count < by_memory ? count : by_memory;
    return count > 2 ? count : 2;
}

static bool measure_size(struct bhi_timekeeper *timer, struct bhi_contender *candidate,
                         struct bhi_contender *trusted, const struct bhi_trial *trial,
                         struct bhi_candidate *out, struct bhi_race *out_race,
                         struct bhi_judge_outcome *outcome) {
    struct measuring m = {
        .timer = timer,
        .race = {.court = timer->court,
                 .contenders = {candidate, &timer->reference, trusted},
                 .base = &timer->base,
                 .flush = timer->options.warm ? NULL : &timer->flush,
                 .trial = trial,
                 .candidate = out},
        .out = &out->timings[out->timing_count],
        .batch = batch_of(timer->court->task, trial),
        .outcome = outcome,
    };
    *m.out = (struct bhi_timing){.size = trial->size};
    const bool good =
        allocate(&m, timer->options.runs) && run_first(&m) && warm_up(&m) && measure(&m);
    out->timing_count += good;
    *out_race = m.race;
    release(&m);
    return good;
}

/* -- one candidate ------------------------------------------------------------------------------
 */

/* Of a worker that claims more than has passed, the library itself says so. */
static bool claims_too_much(const struct bhi_judge_outcome *outcome) {
    return outcome->status == BH_PROTOCOL && strstr(outcome->message, "claims more time");
}

/* Makes the failure of a run the candidate's verdict, if it is its own. */
static bool take_failure(const struct bhi_race *race, struct bhi_candidate *out,
                         struct bhi_judge_outcome *outcome) {
    if (race->wrong) {
        return true;
    }
    const bool its_own = race->running == BHI_RACER_CANDIDATE || race->running == BHI_RACER_TRUSTED;
    if (!its_own || bhi_judge_outcome_is_elsewhere(outcome)) {
        return false;
    }
    out->judgement = claims_too_much(outcome) ? BHI_JUDGED_FORGED : BHI_JUDGED_FAILED;
    out->outcome = *outcome;
    out->trial = race->trial;
    return true;
}

static bool measure_all(struct bhi_timekeeper *timer, struct bhi_contender *candidate,
                        struct bhi_contender *trusted, struct bhi_candidate *out,
                        struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = timer->court->task;
    for (size_t i = 0; i < task->size_count && out->judgement == BHI_JUDGED_CORRECT; i++) {
        const struct bhi_trial *trial = bhi_timed_trial(timer->court, i);
        struct bhi_race race;
        if (!trial) {
            continue;
        }
        if (!measure_size(timer, candidate, trusted, trial, out, &race, outcome)) {
            return take_failure(&race, out, outcome);
        }
        bhi_slower_judge(timer->court, &timer->options, &out->timings[out->timing_count - 1], out);
    }
    return true;
}

static bool measure_candidate(struct bhi_timekeeper *timer, struct bhi_candidate *out,
                              struct bhi_judge_outcome *outcome) {
    struct bhi_court *court = timer->court;
    const struct bhi_task_groups *groups = &court->task->groups;
    struct bhi_contender candidate = {0}, trusted = {0};
    const bool good =
        bhi_contender_open(court, &out->file, false, groups, &candidate, outcome) &&
        (!timer->options.guard ||
         bhi_contender_open(court, &out->file, true, groups, &trusted, outcome)) &&
        measure_all(timer, &candidate, timer->options.guard ? &trusted : NULL, out, outcome);
    bhi_contender_close(&candidate);
    bhi_contender_close(&trusted);
    return good;
}

bool bhi_timekeeper_measure(struct bhi_timekeeper *timer, struct bhi_candidate *candidate,
                            struct bhi_judge_outcome *outcome) {
    bool good = false, again = true;
    free(candidate->timings);
    candidate->timing_count = 0;
    const struct bhi_candidate checked = *candidate;
    candidate->timings = calloc(timer->court->task->size_count, sizeof *candidate->timings);
    if (!candidate->timings) {
        return bhi_judge_outcome_fail(outcome, BH_NO_MEMORY, "out of memory");
    }
    for (int i = 0; i < ATTEMPTS && again; i++) {
        struct bhi_timing *timings = candidate->timings;
        *candidate = checked;
        candidate->timings = timings;
        *outcome = (struct bhi_judge_outcome){.status = BH_OK};
        good = measure_candidate(timer, candidate, outcome);
        again = outcome->status != BH_OK && !bhi_judge_outcome_is_elsewhere(outcome) &&
                bhi_judge_outcome_is_doubtful(outcome);
    }
    return good;
}
