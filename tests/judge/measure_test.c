/* What a measurement concludes of runs. All times are synthetic: no worker and no device is there.
 * The judge's own functions that run something are replaced (--wrap). */
#include "judge/time/measure.h"

#include "harness.h"

#include <math.h>
#include <stdio.h>

#include "judge/data/draw.h"

/* A run on the device; the way to the worker and back; a batch of the empty kernel. */
enum { RUN_NS = 150000, WAY_NS = 150000, BASE_NS = 300000, RUNS = 48 };
/* So many rounds has a measurement: in eight groups six runs and a batch; and nine that do not count for
 * each fresh worker. */
enum { ROUNDS = 8 * (6 + 1) + 2 * 9 };

/* What differs from honest runs of the reference's kernel on a quiet machine. 0: nothing. */
struct scene {
    double claims;        /* of what it takes: what the candidate claims of its runs, */
    size_t until;         /* before this round; 0: of all */
    double noise;         /* single runs take up to so much longer */
    double slows_batches; /* beside the candidate the reference's batches take so much longer; */
    double slows_runs;    /* its single runs do */
    double busy_batches;  /* from the first candidate's worker on all batches take so much longer */
    double later;         /* in the second half of a measurement all runs take so much longer */
    double longer;        /* all runs take so much longer */
    bool on_processor;    /* the driver runs kernels there */
    bool gone, changed;   /* the candidate's file, since it was checked */
    double shared;        /* others have the processor: by all clocks runs take up to so much
                             longer, but not by what the kernel counts as the workers' work */
};

static struct scene scene;
static bool was_beside; /* a candidate has run */
static size_t renewed;  /* so many fresh workers there were */
static size_t alone;    /* runs that the reference has had without a candidate */

static double factor(double given) {
    return given > 0 ? given : 1;
}

/* -- in place of what runs ------------------------------------------------------------------------
 */

BHT_WRAP(bool, bhi_contender_open, struct bhi_court *court, const struct bhi_kernel_file *file,
         bool trusted, const struct bhi_task_groups *groups, struct bhi_contender *out,
         struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_contender){.groups = groups}; /* which the reference has not */
    out->kernel.has_content = !scene.gone;
    out->kernel.content[0] = scene.changed;
    return !scene.gone || bhi_judge_outcome_fail(outcome, BH_LOAD_FAILED, "no such file");
}

BHT_WRAP(bool, bhi_contender_open_reference, struct bhi_court *court, struct bhi_contender *out,
         struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_contender){.stream = NULL};
    return true;
}

BHT_WRAP(bool, bhi_contender_renew, const struct bhi_court *court, struct bhi_contender *contender,
         struct bhi_judge_outcome *outcome) {
    renewed++;
    return true;
}

BHT_WRAP(bool, bhi_base_open, const struct bhi_court *court, struct bhi_base *out,
         struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_base){.stream = NULL};
    return true;
}

BHT_WRAP(bool, bhi_court_timed_stream, const struct bhi_court *court, bh_stream **out_stream,
         struct bhi_judge_outcome *outcome) {
    *out_stream = NULL;
    return true;
}

BHT_WRAP(bool, bhi_stream_is_on_processor, bh_stream *stream, bool *out,
         struct bhi_judge_outcome *outcome) {
    *out = scene.on_processor;
    return true;
}

BHT_WRAP(bool, bhi_maker_open_for, const struct bhi_court *court, const struct bhi_trial *of,
         struct bhi_maker *out, struct bhi_judge_outcome *outcome) {
    return true;
}

BHT_WRAP(bool, bhi_round_run, struct bhi_race *race, size_t count, bool with_base, unsigned one_of,
         struct bhi_clocked out[BHI_RACERS], struct bhi_judge_outcome *outcome) {
    const bool beside = race->contenders[BHI_RACER_CANDIDATE]->groups;
    const struct bhi_philox noise = bhi_philox(7, (struct bhi_philox){{(uint32_t)race->rounds}});
    was_beside |= beside;
    alone += !beside;
    race->rounds++;
    for (int i = 0; i < 2; i++) {
        const bool slowed = beside && i == BHI_RACER_REFERENCE;
        double run_ns = RUN_NS + noise.words[i] % 2000;
        run_ns *= factor(scene.longer);
        run_ns *= race->rounds % ROUNDS > ROUNDS / 2 ? factor(scene.later) : 1;
        run_ns *= slowed ? factor(scene.slows_runs) : 1;
        run_ns *= 1 + scene.noise * noise.words[2 + i] / UINT32_MAX;
        const bool lies =
            scene.claims > 0 && beside && !i && (!scene.until || race->rounds < scene.until);
        const double claim_ns = run_ns * (lies ? factor(scene.claims) : 1);
        const double wait = (factor(scene.shared) - 1) * noise.words[2 + i] / UINT32_MAX;
        out[i].device_ns = (uint64_t)(claim_ns * (lies ? 1 : 1 + wait));
        out[i].host_ns = (uint64_t)((run_ns + WAY_NS) * (1 + wait));
        if (scene.shared > 0) {
            out[i].work_ns = (uint64_t)run_ns + WAY_NS / 50;
        }
        if (count > 1) {
            run_ns *= slowed ? factor(scene.slows_batches) : 1;
            run_ns *= was_beside ? factor(scene.busy_batches) : 1;
            run_ns *= (double)count;
            out[i].host_ns = (uint64_t)((BASE_NS + run_ns) * (1 + wait));
            out[i].work_ns = scene.shared > 0 ? (uint64_t)run_ns + BASE_NS / 5 : 0;
        }
    }
    out[BHI_RACER_BASE].host_ns = BASE_NS;
    out[BHI_RACER_BASE].work_ns = scene.shared > 0 ? BASE_NS / 5 : 0;
    return true;
}

/* -- what is concluded ---------------------------------------------------------------------------
 */

static bh_judge_timing timing;

/* Measures a candidate in |what|. */
static bh_judge_verdict measure(struct scene what) {
    static struct bhi_task task = {.size_count = 1, .array_count = 3, .parameter_count = 0};
    static struct bhi_trial trial = {.bytes = 4096};
    struct bhi_court court = {.task = &task, .trials = {.list = &trial, .count = 1}};
    const bh_judge_options options = {.timed_runs = RUNS, .warm = true, .all_processors = true};
    struct bhi_timekeeper timer;
    struct bhi_judge_outcome outcome = {.status = BH_OK};
    struct bhi_candidate candidate = {.judged = true};
    scene = what;
    was_beside = false;
    alone = renewed = 0;
    BHT_TRUE(bhi_timekeeper_open(&court, &options, &timer, &outcome));
    BHT_TRUE(bhi_timekeeper_measure(&timer, &candidate, &outcome));
    BHT_EQ(candidate.judgement.timing_count, 1);
    timing = candidate.judgement.timings[0];
    if (candidate.judgement.verdict == BH_JUDGE_TIMING_FORGED) {
        double claimed = 0, seen = 0;
        (void)sscanf(candidate.judgement.message,
                     "its worker claims %lf us for a run, and the host saw %lf us", &claimed,
                     &seen);
        BHT_TRUE(claimed > 0 && claimed < 0.9 * seen);
        BHT_TRUE(fabs(seen * 1e3 / (RUN_NS * factor(what.longer)) - 1) < 0.1);
    }
    bhi_timekeeper_close(&timer);
    return candidate.judgement.verdict;
}

/* Its times would be those of something that nobody has checked; and without its file it must not
 * end the measuring of others. */
TEST(a_file_that_is_not_what_was_checked) {
    static const struct scene scenes[] = {{.changed = true}, {.gone = true}};
    struct bhi_task task = {.size_count = 1};
    struct bhi_court court = {.task = &task};
    struct bhi_timekeeper timer = {.court = &court};
    for (size_t i = 0; i < 2; i++) {
        struct bhi_judge_outcome outcome = {.status = BH_OK};
        struct bhi_candidate candidate = {.file.path = "a.comp", .judgement.hashed = true};
        const bh_judgement *of = &candidate.judgement;
        scene = scenes[i];
        BHT_TRUE(bhi_timekeeper_measure(&timer, &candidate, &outcome));
        BHT_STR_EQ(bh_judge_verdict_name(of->verdict, of->status), "LOAD_FAILED");
        BHT_TRUE(!of->hashed && !of->timing_count); /* and nothing is recorded */
    }
}

/* Of fresh inputs 0 / 0 may be computed that no trial had. Nobody is accused by it, and it hides
 * no error of another element. */
TEST(a_nan_that_no_trial_had) {
    static float expected[2] = {NAN, 1}, same[2] = {NAN, 1}, wrong[2] = {NAN, 2};
    struct bhi_task task = {.array_count = 1, .size_count = 1};
    struct bhi_trial_array array = {.form = {.dtype = BH_DTYPE_F32, .dimensions = 1, .shape = {2}},
                                    .count = 2,
                                    .expected = expected};
    struct bhi_trial trial = {.arrays = &array, .timed = true};
    bh_judgement judgement = {.verdict = BH_JUDGE_CORRECT};
    struct bhi_judge_outcome outcome = {.status = BH_OK};
    const struct bhi_court court = {.task = &task};
    task.arrays[0] =
        (struct bhi_task_array){.place = "Z", .role = BHI_TASK_OUT, .dtype = BH_DTYPE_F32};
    const struct bhi_launched right = {.outputs = {same}}, other = {.outputs = {wrong}};
    BHT_TRUE(bhi_candidate_check(&court, &trial, &trial, &right, &judgement, &outcome));
    BHT_TRUE(!bhi_candidate_check(&court, &trial, &trial, &other, &judgement, &outcome));
    BHT_EQ(judgement.index[0], 1);
    trial.timed = false;
    BHT_TRUE(!bhi_candidate_check(&court, &trial, &trial, &right, &judgement, &outcome));
}

TEST(an_honest_candidate) {
    BHT_EQ(measure((struct scene){0}), BH_JUDGE_CORRECT);
    BHT_EQ(timing.doubt, BH_JUDGE_DOUBT_NONE);
    BHT_TRUE(timing.ratio > 0.99 && timing.ratio < 1.01);
    BHT_TRUE(timing.host_ns > RUN_NS && timing.host_ns < 1.05 * RUN_NS);
    BHT_TRUE(!timing.noisy && timing.noise < 0.005);
}

/* The reference beside itself in five groups, then beside the candidate in eight, whose first workers are
 * fresh. */
TEST(workers_live_for_a_group_and_a_gpus_for_four) {
    BHT_EQ(measure((struct scene){.on_processor = true}), BH_JUDGE_CORRECT);
    BHT_EQ(renewed, 2u * (5 + 7));
    BHT_EQ(measure((struct scene){0}), BH_JUDGE_CORRECT);
    BHT_EQ(renewed, 2u * (2 + 1));
}

TEST(noise_is_said) {
    BHT_EQ(measure((struct scene){.noise = 0.5}), BH_JUDGE_CORRECT);
    BHT_TRUE(timing.noisy && timing.noise > 0.005 && timing.ratio > 0);
}

TEST(claims_of_less_than_half) {
    BHT_EQ(measure((struct scene){.claims = 0.45}), BH_JUDGE_TIMING_FORGED);
    BHT_TRUE(timing.ratio == 0);
}

/* One measurement accuses nobody: the next one counts. */
TEST(claims_that_are_false_once) {
    BHT_EQ(measure((struct scene){.claims = 0.45, .until = ROUNDS}), BH_JUDGE_CORRECT);
    BHT_EQ(timing.doubt, BH_JUDGE_DOUBT_NONE);
    BHT_TRUE(timing.ratio > 0.99 && timing.ratio < 1.01);
}

/* The reference's claims explain little of its batches then, and would excuse the candidate's. */
TEST(load_in_the_batches_of_the_reference) {
    BHT_EQ(measure((struct scene){.claims = 0.45, .slows_batches = 1.8}), BH_JUDGE_CORRECT);
    BHT_EQ(timing.doubt, BH_JUDGE_DOUBT_CLAIMS);
    BHT_TRUE(timing.ratio == 0);
}

/* An honest candidate has no disadvantage: the reference is measured alone again. */
TEST(a_machine_that_becomes_busy) {
    (void)measure((struct scene){0});
    const size_t quiet = alone;
    BHT_EQ(measure((struct scene){.busy_batches = 1.8}), BH_JUDGE_CORRECT);
    BHT_EQ(alone, 2 * quiet);
    BHT_EQ(timing.doubt, BH_JUDGE_DOUBT_NONE);
    BHT_TRUE(timing.ratio > 0.99 && timing.ratio < 1.01);
}

TEST(load_in_the_runs_of_the_reference) {
    BHT_EQ(measure((struct scene){.slows_runs = 1.2}), BH_JUDGE_CORRECT);
    BHT_EQ(timing.doubt, BH_JUDGE_DOUBT_LOAD);
    BHT_TRUE(timing.ratio == 0);
}

TEST(a_reference_that_drifts) {
    BHT_EQ(measure((struct scene){.later = 1.2}), BH_JUDGE_CORRECT);
    BHT_EQ(timing.doubt, BH_JUDGE_DOUBT_DRIFT);
    BHT_TRUE(timing.ratio == 0 && timing.drift > 0.05);
}

/* By the clocks a run takes 0.15 to 1.5 ms. */
TEST(others_on_the_processor) {
    BHT_EQ(measure((struct scene){.shared = 10}), BH_JUDGE_CORRECT);
    BHT_EQ(timing.doubt, BH_JUDGE_DOUBT_NONE);
    BHT_TRUE(timing.ratio > 0.99 && timing.ratio < 1.01 && !timing.noisy);
    BHT_TRUE(timing.host_ns > 0.95 * RUN_NS && timing.host_ns < 1.05 * RUN_NS);
}

TEST(claims_that_others_would_excuse) {
    BHT_EQ(measure((struct scene){.claims = 0.6, .shared = 10}), BH_JUDGE_TIMING_FORGED);
    BHT_TRUE(timing.ratio == 0);
    /* No batch shows this one, but the single runs do. */
    BHT_EQ(measure((struct scene){.claims = 0.8, .longer = 10, .shared = 10}),
           BH_JUDGE_TIMING_FORGED);
}
