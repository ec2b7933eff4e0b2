#include "judge/time/measure.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/data/ratio.h"
#include "judge/time/series.h"

/* -- the reference alone --------------------------------------------------------------------- */

enum {
    ALONE_GROUPS = 5, /* with workers of their own; there is no ratio to be known */
    GPU_LIVES = 4,    /* groups of one worker of a GPU, whose driver starts one after the other, for
                         0.2 s each; and their workers differ less */
};

static const double alone_limit = 0.05;

bool bhi_alone_of(const struct bhi_series *series, struct bhi_alone *out) {
    const uint64_t *times = series->times[BHI_RACER_REFERENCE];
    *out = (struct bhi_alone){.steadiness.median = 0};
    return bhi_steadiness_of(times, series->count, series->groups, &out->steadiness) &&
           (!series->device || bhi_overhead_of(series->hosts[BHI_RACER_REFERENCE], times,
                                               series->count, &out->overhead));
}

/* The times of all groups, and |count| batches, some of each. |fresh|: with fresh workers from the
 * first run on. */
static bool take(struct bhi_series *series, size_t count, bool fresh, struct bhi_batches *batches) {
    const size_t lives = series->race.on_processor ? 1 : GPU_LIVES;
    for (size_t i = 0; i < series->groups; i++) {
        const size_t more = bhi_group_begin(count, series->groups, i + 1) -
                            bhi_group_begin(count, series->groups, i);
        if ((fresh || i > 0) && i % lives == 0 && !bhi_series_renew(series, i)) {
            return false;
        }
        if (!bhi_series_take(series, i)) {
            return false;
        }
        if (!i) {
            bhi_batches_begin(bhi_batches_length(series), batches);
        }
        if (series->device && !bhi_batches_take(batches, series, more)) {
            return false;
        }
    }
    return true;
}

/* Measures the reference against itself, in turns, in |count| rounds. |race| has it as reference
 * and, with a worker of its own, as candidate. */
static bool measure_reference(const struct bhi_race *race, size_t count, struct bhi_alone *out,
                              struct bhi_judge_outcome *outcome) {
    struct bhi_series series;
    struct bhi_batches batches;
    bh_judgement itself = {.verdict = BH_JUDGE_CORRECT};
    struct bhi_race alone = *race;
    alone.judgement = &itself;
    bool good = bhi_series_begin(&alone, count, outcome, &series);
    series.groups = count < ALONE_GROUPS ? count : ALONE_GROUPS;
    good = good && take(&series, series.groups, true, &batches);
    const bool known = good && bhi_alone_of(&series, out);
    if (known && series.device) {
        out->seen = bhi_batches_seen(&batches, &series, BHI_RACER_REFERENCE, 0);
    }
    if (series.race.wrong) {
        bhi_judge_outcome_fail(outcome, BH_INVALID_ARGUMENT,
                               "the %s does not compute the same each time: %.300s",
                               race->court->baseline ? "baseline" : "reference", itself.message);
    } else if (good && !known) {
        bhi_judge_outcome_memory(outcome);
    }
    bhi_series_free(&series);
    return known;
}

bool bhi_alone_was_faster(const struct bhi_alone *alone, const struct bhi_alone *beside) {
    return bhi_steadiness_is_slower(&beside->steadiness, &alone->steadiness, alone_limit) ||
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

/* -- slower than was asked for --------------------------------------------------------------- */

const struct bhi_trial *bhi_timed_trial(const struct bhi_court *court, size_t size) {
    for (size_t i = 0; i < court->trials.count && !court->task->sizes[size].check_only; i++) {
        if (court->trials.list[i].size == size) {
            return &court->trials.list[i];
        }
    }
    return NULL;
}

/* Makes a candidate that is CORRECT SLOWER, if |timing|, one of its own, says so. */
static void slower_judge(const struct bhi_court *court, const bh_judge_options *options,
                         const bh_judge_timing *timing, bh_judgement *out) {
    if (out->verdict != BH_JUDGE_CORRECT || options->slower_than <= 0 ||
        timing->low <= options->slower_than) {
        return;
    }
    bhi_judgement_end(court->task, bhi_timed_trial(court, timing->size_index), BH_JUDGE_SLOWER,
                      out);
    out->timed = true;
    snprintf(out->message, sizeof out->message,
             "it takes %.3f times as long as the %s, at least %.3f (%s)", timing->ratio,
             court->baseline ? "baseline" : "reference", timing->low, out->size_text);
}

static bool is_of(const bh_judge_timing *timing, const bh_judge_options *options) {
    const bool same_caches = !timing->device || timing->cold == !options->warm;
    const bool same_processors =
        options->all_processors ? !timing->one_processor : !timing->spreads;
    return timing->ratio > 0 && same_caches && same_processors &&
           (!options->guard_cost || timing->guard_ratio > 0);
}

bool bhi_slower_judge_known(const struct bhi_court *court, const bh_judge_options *options,
                            bh_judgement *out) {
    size_t missing = 0;
    for (size_t i = 0; i < court->task->size_count; i++) {
        missing += !!bhi_timed_trial(court, i);
    }
    for (size_t i = 0; i < out->timing_count; i++, missing--) {
        if (!is_of(&out->timings[i], options)) {
            return false;
        }
    }
    for (size_t i = 0; i < out->timing_count; i++) {
        slower_judge(court, options, &out->timings[i], out);
    }
    return !missing || out->verdict == BH_JUDGE_SLOWER;
}

enum {
    WINDOW = 10,  /* runs of the warm-up between two looks at the noise */
    WINDOWS = 5,  /* at most */
    ATTEMPTS = 3, /* of a measurement that cannot be used; of a run that others may have ended */
    BATCHES = 8,  /* that the host measures at first; the shortest counts */
    UNSURE = 2,   /* so many times as many when it measures again because of them; */
    FORGED = 4,   /* because of claims that seem to be false */
    ALONE = 20,   /* rounds of the reference against itself, at most */
};

static const double noise_limit = 0.005, drift_limit = 0.05;

/* One size of one candidate. */
struct measuring {
    struct bhi_timekeeper *timer;
    struct bhi_series series;
    bh_judge_timing *out;
    size_t batches; /* that the host measures */
    struct bhi_batches seen;
    double seen_ns; /* a run as the host saw it, of claims that are false */
    struct bhi_judge_outcome *outcome;
};

/* Why a measurement cannot be used. */
struct doubts {
    enum bhi_honesty claims;
    enum bhi_honesty batches; /* by the batches alone */
    bool drifts;              /* the reference was faster or slower in the second half */
    bool disturbed;           /* it was slower than alone */
};

static bh_judge_doubt name_doubt(const struct doubts *doubts) {
    return doubts->claims != BHI_HONEST ? BH_JUDGE_DOUBT_CLAIMS
           : doubts->drifts             ? BH_JUDGE_DOUBT_DRIFT
           : doubts->disturbed          ? BH_JUDGE_DOUBT_LOAD
                                        : BH_JUDGE_DOUBT_NONE;
}

/* -- the timer ------------------------------------------------------------------------------- */

/* Chooses the processor for all workers that are timed, if the driver runs kernels on processors.
 * The first worker says whether it does. */
static bool take_processor(struct bhi_timekeeper *timer, struct bhi_judge_outcome *outcome) {
    struct bhi_court *court = timer->court;
    cpu_set_t may;
    bool on_processor;
    if (!bhi_stream_is_on_processor(timer->base.stream, &on_processor, outcome)) {
        return false;
    }
    timer->on_processor = on_processor;
    if (on_processor && !timer->options.all_processors) {
        bhi_processor_choose(&timer->processor);
    }
    timer->spreads = on_processor && !timer->processor.chosen &&
                     (sched_getaffinity(0, sizeof may, &may) != 0 || CPU_COUNT(&may) > 1);
    if (!timer->processor.chosen) {
        return true;
    }
    court->processor = timer->processor.chosen;
    court->slowdown = timer->processor.count;
    bhi_base_close(&timer->base);
    return bhi_base_open(court, &timer->base, outcome);
}

/* The first size that is timed says what is needed. */
static bool open_maker(struct bhi_timekeeper *timer, struct bhi_judge_outcome *outcome) {
    struct bhi_court *court = timer->court;
    const struct bhi_trial *of = NULL;
    for (size_t i = 0; i < court->task->size_count && !of; i++) {
        of = bhi_timed_trial(court, i);
    }
    if (timer->on_processor || !of) {
        return true;
    }
    court->maker = &timer->maker;
    return bhi_maker_open_for(court, of, &timer->maker, outcome);
}

bool bhi_timekeeper_open(struct bhi_court *court, const bh_judge_options *options,
                         struct bhi_timekeeper *out, struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_timekeeper){.court = court, .options = *options};
    out->alone = calloc(court->task->size_count, sizeof *out->alone);
    const bool good = (out->alone || bhi_judge_outcome_memory(outcome)) &&
                      bhi_base_open(court, &out->base, outcome) && take_processor(out, outcome) &&
                      bhi_contender_open_reference(court, &out->reference, outcome) &&
                      bhi_contender_open_reference(court, &out->itself, outcome) &&
                      (!court->baseline || bhi_reference_open(court, &out->truth, outcome)) &&
                      bhi_court_timed_stream(court, &court->source, outcome) &&
                      open_maker(out, outcome) &&
                      (options->warm || bhi_flush_open(court, &out->flush, outcome));
    if (!good) {
        bhi_timekeeper_close(out);
    }
    return good;
}

void bhi_timekeeper_close(struct bhi_timekeeper *timer) {
    bhi_maker_close(&timer->maker);
    if (timer->court) {
        timer->court->maker = NULL;
        bh_stream_release(timer->court->source);
        timer->court->source = NULL;
    }
    bhi_contender_close(&timer->reference);
    bhi_contender_close(&timer->itself);
    bhi_reference_close(&timer->truth);
    free(timer->alone);
    timer->alone = NULL;
    bhi_base_close(&timer->base);
    bhi_flush_close(&timer->flush);
    bhi_processor_release(&timer->processor);
}

static bool warm_up(struct measuring *m) {
    struct bhi_series *series = &m->series;
    const size_t window = series->count < WINDOW ? series->count : WINDOW;
    /* Batches of runs warm it sooner; and on one processor, no other group is warmed up longer. */
    const int windows = series->device && !m->timer->processor.chosen ? WINDOWS : 1;
    for (int i = 0; i < windows; i++) {
        struct bhi_steadiness steadiness;
        if (!bhi_series_warm(series, window)) {
            return false;
        }
        if (!bhi_steadiness_of(series->times[BHI_RACER_REFERENCE], window, 1, &steadiness)) {
            return bhi_judge_outcome_memory(m->outcome);
        }
        if (!bhi_steadiness_drifts(&steadiness, drift_limit)) {
            break; /* it is noisy, maybe, but not because it is cold */
        }
    }
    return true;
}

/* -- what the host sees ---------------------------------------------------------------------- */

static struct bhi_seen seen(const struct measuring *m, enum bhi_racer racer) {
    return bhi_batches_seen(&m->seen, &m->series, racer, m->out->ratio);
}

/* Where the host cannot see one of the two beside what an empty batch takes, which is long on a
 * busy machine, it measures longer batches. */
static bool lengthen_batches(struct measuring *m) {
    struct bhi_seen candidate = seen(m, BHI_RACER_CANDIDATE);
    struct bhi_seen reference = seen(m, BHI_RACER_REFERENCE);
    const size_t most = m->series.batch;
    while (m->seen.length < most &&
           (bhi_seen_run_ns(&candidate) <= 0 || bhi_seen_run_ns(&reference) <= 0)) {
        bhi_batches_begin(4 * m->seen.length < most ? 4 * m->seen.length : most, &m->seen);
        if (!bhi_batches_take(&m->seen, &m->series, m->batches)) {
            return false;
        }
        candidate = seen(m, BHI_RACER_CANDIDATE);
        reference = seen(m, BHI_RACER_REFERENCE);
    }
    return true;
}

/* -- the reference alone --------------------------------------------------------------------- */

/* NULL: what times are compared with is the reference itself. */
static struct bhi_reference *truth_of(struct bhi_timekeeper *timer) {
    return timer->court->baseline ? &timer->truth : NULL;
}

/* No worker of a candidate is alive. */
static bool measure_alone(struct bhi_timekeeper *timer, const struct bhi_trial *trial,
                          struct bhi_judge_outcome *outcome) {
    const struct bhi_race race = {.court = timer->court,
                                  .contenders = {&timer->itself, &timer->reference},
                                  .base = &timer->base,
                                  .reference = truth_of(timer),
                                  .flush = timer->options.warm ? NULL : &timer->flush,
                                  .trial = trial,
                                  .on_processor = timer->on_processor};
    const size_t runs = timer->options.timed_runs < ALONE ? timer->options.timed_runs : ALONE;
    const bool good = measure_reference(&race, runs, &timer->alone[trial->size], outcome);
    bhi_tray_close(&timer->itself.tray);
    return good;
}

/* Before a candidate has a worker. */
static bool measure_all_alone(struct bhi_timekeeper *timer, struct bhi_judge_outcome *outcome) {
    for (size_t i = 0; i < timer->court->task->size_count; i++) {
        const struct bhi_trial *trial = bhi_timed_trial(timer->court, i);
        if (trial && timer->alone[i].steadiness.median <= 0 &&
            !measure_alone(timer, trial, outcome)) {
            return false;
        }
    }
    return true;
}

/* Measures the reference alone again, while the candidate has no worker. */
static bool measure_without(struct measuring *m) {
    struct bhi_race *race = &m->series.race;
    bhi_contender_rest(race->contenders[BHI_RACER_CANDIDATE]);
    if (race->contenders[BHI_RACER_TRUSTED]) {
        bhi_contender_rest(race->contenders[BHI_RACER_TRUSTED]);
    }
    race->running = BHI_RACER_REFERENCE;
    return measure_alone(m->timer, race->trial, m->outcome) &&
           bhi_series_renew_one(&m->series, BHI_RACER_CANDIDATE) &&
           bhi_series_renew_one(&m->series, BHI_RACER_TRUSTED);
}

/* Was the reference slower than it is alone? If it is slower than it was, the machine may have
 * become slower since, so it is measured alone again. */
static bool find_disturbance(struct measuring *m, bool *out_disturbed) {
    struct bhi_alone *alone = &m->timer->alone[m->series.race.trial->size], beside;
    *out_disturbed = false;
    if (!bhi_alone_of(&m->series, &beside)) {
        return bhi_judge_outcome_memory(m->outcome);
    }
    if (bhi_alone_was_faster(alone, &beside)) {
        if (!measure_without(m)) {
            return false;
        }
        *out_disturbed = bhi_alone_was_faster(alone, &beside);
    }
    if (!*out_disturbed) {
        bhi_alone_lower(alone, &beside);
    }
    return true;
}

/* -- what is concluded of claims ------------------------------------------------------------- */

/* Compares batches with what was claimed. If claims exceed only what the reference's batches alone
 * explain, the machine may have become busy since, so those are measured again. */
static bool bound_by_batches(struct measuring *m, enum bhi_honesty *out_honesty) {
    const struct bhi_seen *alone = &m->timer->alone[m->series.race.trial->size].seen;
    if (!lengthen_batches(m)) {
        return false;
    }
    const struct bhi_seen candidate = seen(m, BHI_RACER_CANDIDATE);
    const struct bhi_seen reference = seen(m, BHI_RACER_REFERENCE);
    m->seen_ns = m->out->host_ns = bhi_seen_run_ns(&candidate);
    *out_honesty = bhi_honesty_beside(&candidate, &reference, alone);
    if (*out_honesty != BHI_HONEST && bhi_honesty_of(&candidate, &reference) == BHI_HONEST) {
        if (!measure_without(m)) {
            return false;
        }
        *out_honesty = bhi_honesty_beside(&candidate, &reference, alone);
    }
    return true;
}

/* Compares the single runs themselves, by the host's clock, with what was claimed of them. If they
 * differ by more than the reference varies alone, and not by more than it varied here, the machine
 * may have become busy since, so it is measured alone again. */
static bool bound_by_runs(struct measuring *m, enum bhi_honesty *out_honesty) {
    const struct bhi_series *series = &m->series;
    const struct bhi_overhead *alone = &m->timer->alone[series->race.trial->size].overhead;
    struct bhi_overhead_runs runs[2];
    struct bhi_overhead_verdict verdict = {.honesty = BHI_HONEST};
    for (int i = 0; i < 2; i++) {
        runs[i] = (struct bhi_overhead_runs){series->hosts[i], series->times[i]};
    }
    for (int i = 0; i < 2; i++) {
        if (!bhi_overhead_judge(&runs[BHI_RACER_CANDIDATE], &runs[BHI_RACER_REFERENCE],
                                series->count, series->groups, alone, &verdict)) {
            return bhi_judge_outcome_memory(m->outcome);
        }
        if (!verdict.only_alone) {
            break;
        }
        if (i == 0 && !measure_without(m)) {
            return false;
        }
    }
    *out_honesty = verdict.honesty;
    if (verdict.honesty == BHI_FORGED) {
        m->seen_ns = verdict.run_ns;
    }
    return true;
}

static bool bound(struct measuring *m, struct doubts *out) {
    enum bhi_honesty runs = BHI_HONEST;
    out->claims = out->batches = BHI_HONEST;
    if (!m->series.device) {
        return true; /* the times are the host's own */
    }
    if (!bound_by_batches(m, &out->batches) || !bound_by_runs(m, &runs)) {
        return false;
    }
    out->claims = m->series.unclaimed ? BHI_FORGED : out->batches > runs ? out->batches : runs;
    return true;
}

/* -- one measurement ------------------------------------------------------------------------- */

static void conclude(struct measuring *m) {
    const struct bhi_series *series = &m->series;
    bh_judge_timing *out = m->out;
    struct bhi_ratio ratio;
    out->runs = series->count;
    out->device = series->device;
    out->cold = !!series->race.flush;
    out->spreads = m->timer->spreads;
    out->one_processor = m->timer->processor.chosen;
    out->median_ns = bhi_series_median(series, BHI_RACER_CANDIDATE);
    out->reference_ns = bhi_series_median(series, BHI_RACER_REFERENCE);
    const double trusted = bhi_series_median(series, BHI_RACER_TRUSTED);
    out->guard_ratio = trusted > 0 ? out->median_ns / trusted : 0;
    out->ratio = out->low = out->high = 0;
    if (bhi_ratio_of(series->times[BHI_RACER_CANDIDATE], series->times[BHI_RACER_REFERENCE],
                     series->count, series->groups, &ratio)) {
        out->ratio = ratio.ratio;
        out->low = ratio.low;
        out->high = ratio.high;
    }
}

/* |fresh|: with fresh workers from the first run on. */
static bool measure_once(struct measuring *m, bool fresh, struct doubts *out) {
    struct bhi_steadiness steadiness;
    struct bhi_series *series = &m->series;
    if (!take(series, m->batches, fresh, &m->seen)) {
        return false;
    }
    conclude(m);
    if (!bound(m, out)) {
        return false;
    }
    if (!bhi_steadiness_of(series->times[BHI_RACER_REFERENCE], series->count, series->groups,
                           &steadiness)) {
        return bhi_judge_outcome_memory(m->outcome);
    }
    m->out->noise = steadiness.noise;
    m->out->noisy = steadiness.noise > noise_limit;
    m->out->drift = steadiness.drift;
    out->drifts = bhi_steadiness_drifts(&steadiness, drift_limit);
    return find_disturbance(m, &out->disturbed);
}

static void forge(struct measuring *m) {
    const struct bhi_race *race = &m->series.race;
    bh_judgement *out = race->judgement;
    bhi_judgement_end(race->court->task, race->trial, BH_JUDGE_TIMING_FORGED, out);
    if (m->series.unclaimed) {
        snprintf(out->message, sizeof out->message,
                 "its worker claims that the device has no clock (%s)", out->size_text);
    } else {
        snprintf(out->message, sizeof out->message,
                 "its worker claims %.3f us for a run, and the host saw %.3f us (%s)",
                 m->out->median_ns / 1e3, m->seen_ns / 1e3, out->size_text);
    }
    m->out->ratio = m->out->low = m->out->high = 0;
}

/* Measures until it can be used. A claim is called false only if each measurement finds it so; the
 * more batches there are, the less the shortest of them owes to other load on the machine. */
static bool measure(struct measuring *m) {
    int forged = 0;
    bool again = true;
    m->batches = BATCHES;
    for (int i = 0; i < ATTEMPTS && again; i++) {
        struct doubts doubts = {.claims = BHI_HONEST};
        if (!measure_once(m, i > 0, &doubts)) {
            return false;
        }
        forged += doubts.claims == BHI_FORGED;
        m->batches *= doubts.batches == BHI_FORGED   ? FORGED
                      : doubts.batches == BHI_UNSURE ? UNSURE
                                                     : 1;
        m->out->doubt = name_doubt(&doubts);
        again = m->out->doubt != BH_JUDGE_DOUBT_NONE;
    }
    if (forged == ATTEMPTS) {
        forge(m);
    } else if (again) {
        m->out->ratio = m->out->low = m->out->high = 0;
    }
    return true;
}

static bool measure_size(struct bhi_timekeeper *timer, struct bhi_contender *candidate,
                         struct bhi_contender *trusted, const struct bhi_trial *trial,
                         bh_judgement *out, struct bhi_race *out_race,
                         struct bhi_judge_outcome *outcome) {
    const struct bhi_race race = {.court = timer->court,
                                  .contenders = {candidate, &timer->reference, trusted},
                                  .base = &timer->base,
                                  .reference = truth_of(timer),
                                  .flush = timer->options.warm ? NULL : &timer->flush,
                                  .trial = trial,
                                  .on_processor = timer->on_processor,
                                  .judgement = out};
    struct measuring m = {
        .timer = timer, .out = &out->timings[out->timing_count], .outcome = outcome};
    *m.out = (bh_judge_timing){.size_index = trial->size};
    const bool good = bhi_series_begin(&race, timer->options.timed_runs, outcome, &m.series) &&
                      warm_up(&m) && measure(&m);
    out->timing_count += good;
    *out_race = m.series.race;
    bhi_series_free(&m.series);
    return good;
}

/* -- one candidate --------------------------------------------------------------------------- */

/* Makes the failure of a run the candidate's verdict, if it is its own. */
static bool take_failure(const struct bhi_race *race, bh_judgement *out,
                         const struct bhi_judge_outcome *outcome) {
    if (race->wrong) {
        return true;
    }
    const bool its_own = race->running == BHI_RACER_CANDIDATE || race->running == BHI_RACER_TRUSTED;
    if (!its_own || bhi_judge_outcome_is_elsewhere(outcome)) {
        return false;
    }
    bhi_judgement_fail(race->court->task, race->trial, outcome, out);
    if (outcome->reason == BH_REASON_DEVICE_TIME) {
        out->verdict = BH_JUDGE_TIMING_FORGED;
        out->status = BH_OK;
    }
    return true;
}

static bool measure_all(struct bhi_timekeeper *timer, struct bhi_contender *candidate,
                        struct bhi_contender *trusted, bh_judgement *out,
                        struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = timer->court->task;
    for (size_t i = 0; i < task->size_count && out->verdict == BH_JUDGE_CORRECT; i++) {
        const struct bhi_trial *trial = bhi_timed_trial(timer->court, i);
        struct bhi_race race;
        if (!trial) {
            continue;
        }
        if (!measure_size(timer, candidate, trusted, trial, out, &race, outcome)) {
            return take_failure(&race, out, outcome);
        }
        slower_judge(timer->court, &timer->options, &out->timings[out->timing_count - 1], out);
    }
    return true;
}

/* Makes its kernel again, from its file. If that fails now, or the file is not what was checked, it
 * is the candidate's verdict: others go on, and no times are reported of what nobody has checked.
 * Returns false as bhi_timekeeper_measure does. */
static bool open_candidate(struct bhi_timekeeper *timer, bool trusted,
                           struct bhi_candidate *candidate, struct bhi_contender *contender,
                           struct bhi_judge_outcome *outcome) {
    bh_judgement *out = &candidate->judgement;
    const bool opened = bhi_contender_open(timer->court, &candidate->file, trusted,
                                           &timer->court->task->groups, contender, outcome);
    const struct bhi_judged_kernel *kernel = &contender->kernel;
    if (!opened && bhi_judge_outcome_is_elsewhere(outcome)) {
        return false;
    }
    const bool changed = out->hashed && kernel->has_content &&
                         memcmp(out->content, kernel->content, sizeof out->content) != 0;
    if (changed) {
        bhi_judge_outcome_fail(outcome, BH_LOAD_FAILED,
                               "%.500s: the file has changed since it was checked",
                               candidate->file.path);
    }
    if (changed || !opened) {
        bhi_judgement_fail(timer->court->task, NULL, outcome, out);
        /* Otherwise this would be recorded of what was checked. */
        out->hashed = kernel->has_content && !changed;
    }
    return true;
}

static bool measure_candidate(struct bhi_timekeeper *timer, struct bhi_candidate *measured,
                              struct bhi_judge_outcome *outcome) {
    const bool guard = timer->options.guard_cost;
    bh_judgement *out = &measured->judgement;
    struct bhi_contender candidate = {0}, trusted = {0};
    bool good = measure_all_alone(timer, outcome) &&
                open_candidate(timer, false, measured, &candidate, outcome);
    if (good && guard && out->verdict == BH_JUDGE_CORRECT) {
        good = open_candidate(timer, true, measured, &trusted, outcome);
    }
    good = good && measure_all(timer, &candidate, guard ? &trusted : NULL, out, outcome);
    bhi_contender_close(&candidate);
    bhi_contender_close(&trusted);
    return good;
}

bool bhi_timekeeper_measure(struct bhi_timekeeper *timer, struct bhi_candidate *candidate,
                            struct bhi_judge_outcome *outcome) {
    bool good = false, again = true;
    candidate->file.deadline_ns = timer->court->task->compile_deadline_ns;
    candidate->judgement.timing_count = 0;
    candidate->judgement.one_processor = timer->processor.chosen;
    candidate->judgement.flushed_bytes = timer->flush.size;
    const struct bhi_candidate checked = *candidate;
    for (int i = 0; i < ATTEMPTS && again; i++) {
        *candidate = checked;
        *outcome = (struct bhi_judge_outcome){.status = BH_OK};
        good = measure_candidate(timer, candidate, outcome);
        again = outcome->status != BH_OK && !bhi_judge_outcome_is_elsewhere(outcome) &&
                bhi_judge_outcome_is_doubtful(outcome);
    }
    candidate->judgement.one_processor &= candidate->judgement.timing_count > 0;
    return good;
}
