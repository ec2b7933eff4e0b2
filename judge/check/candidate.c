#include "judge/check/candidate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "judge/check/case.h"
#include "judge/check/expected.h"
#include "judge/check/kernel_make.h"
#include "judge/check/launch.h"
#include "judge/check/trial.h"
#include "judge/data/draw.h"
#include "judge/data/error.h"
#include "judge/data/whole.h"
#include "tool/text.h"

/* How often a candidate is tried whose worker may have ended because of others. */
enum { ATTEMPTS = 3 };

BH_API const char *bh_judge_verdict_name(bh_judge_verdict verdict, bh_status status) {
    static const char *const names[] = {
        [BH_JUDGE_CORRECT] = "CORRECT",
        [BH_JUDGE_WRONG] = "WRONG",
        [BH_JUDGE_STRAY_WRITE] = "STRAY_WRITE",
        [BH_JUDGE_FAILED] = NULL,
        [BH_JUDGE_TIMING_FORGED] = "TIMING_FORGED",
        [BH_JUDGE_SLOWER] = "SLOWER",
        [BH_JUDGE_STRAY_READ] = "STRAY_READ",
    };
    const bool known = (unsigned)verdict < sizeof names / sizeof names[0] && names[verdict];
    return known ? names[verdict] : bh_status_name(status);
}

BH_API const char *bh_judge_doubt_name(bh_judge_doubt doubt) {
    static const char *const names[] = {[BH_JUDGE_DOUBT_NONE] = "",
                                        [BH_JUDGE_DOUBT_CLAIMS] = "claims",
                                        [BH_JUDGE_DOUBT_DRIFT] = "drift",
                                        [BH_JUDGE_DOUBT_LOAD] = "load"};
    return (unsigned)doubt < sizeof names / sizeof names[0] ? names[doubt] : "";
}

/* -- what came out --------------------------------------------------------------------------- */

void bhi_judgement_end(const struct bhi_task *task, const struct bhi_trial *trial,
                       bh_judge_verdict verdict, bh_judgement *out) {
    out->verdict = verdict;
    out->status = verdict == BH_JUDGE_FAILED ? out->status : BH_NOT_CORRECT;
    out->deterministic &= verdict == BH_JUDGE_SLOWER; /* which is right, too */
    out->located = trial;
    out->error_count = verdict == BH_JUDGE_SLOWER ? out->error_count : 0;
    if (trial) {
        out->size_index = (uint32_t)trial->size;
        out->seed = trial->seed;
        out->hidden = trial->hidden;
        (void)bhi_task_size_text(task, trial->size, out->size_text);
        (void)bhi_trial_fill_text(task, trial, out->fill);
    }
}

void bhi_judgement_fail(const struct bhi_task *task, const struct bhi_trial *trial,
                        const struct bhi_judge_outcome *outcome, bh_judgement *out) {
    bhi_judgement_end(task, trial, BH_JUDGE_FAILED, out);
    out->status = outcome->status;
    out->reason = outcome->reason;
    out->subject = outcome->subject;
    out->blame = outcome->blame;
    snprintf(out->subject_name, sizeof out->subject_name, "%s", outcome->subject_name);
    snprintf(out->message, sizeof out->message, "%s", outcome->message);
}

static bool find_stray(const struct bhi_task *task, const struct bhi_trial *trial,
                       const struct bhi_launched *launched, bh_judgement *out) {
    char where[BHI_TRIAL_TEXT];
    if (!launched->strayed) {
        return false;
    }
    const char *place = launched->stray_place;
    const uint64_t size = launched->stray_bytes;
    const bool before = launched->stray_offset < 0;
    out->verdict = BH_JUDGE_STRAY_WRITE;
    snprintf(out->output, sizeof out->output, "%s", place);
    bhi_format(out->message, sizeof out->message, "it wrote at byte %" PRId64 " %s of %.60s (%s)",
               before ? -launched->stray_offset : launched->stray_offset - (int64_t)size + 1,
               before ? "in front" : "past the end", place, bhi_trial_text(task, trial, where));
    return true;
}

/* Where the element of a sorted output was before; the first of several. */
static uint64_t find_unsorted(const struct bhi_trial_array *array, const void *sorted,
                              uint64_t index, const void *output) {
    const uint64_t size = array->form.bytes / array->count;
    const uint8_t *const wanted = (const uint8_t *)sorted + index * size;
    for (uint64_t i = 0; i < array->count; i++) {
        if (!memcmp((const uint8_t *)output + i * size, wanted, size)) {
            return i;
        }
    }
    (void)bhi_find_nan(array->form.dtype, array->count, output, &index); /* these became alike */
    return index;
}

static void tell_wrong(const struct bhi_task *task, const struct bhi_trial *trial, uint32_t index,
                       const struct bhi_difference *difference, bh_judgement *out) {
    char where[BHI_POSITION_TEXT], run[BHI_TRIAL_TEXT], steps[48] = "";
    const enum bhi_comparison by = task->arrays[index].tolerance.by;
    const struct bhi_trial_array *array = &trial->arrays[index];
    const char *place = task->arrays[index].place;
    out->verdict = BH_JUDGE_WRONG;
    out->wrong = difference->wrong;
    out->elements = array->count;
    out->ulp = difference->ulp;
    out->rank = array->form.dimensions;
    bhi_position_of(&array->form, difference->index, out->index);
    snprintf(out->output, sizeof out->output, "%s", place);
    snprintf(out->expected, sizeof out->expected, "%s", difference->expected);
    snprintf(out->got, sizeof out->got, "%s", difference->got);
    (void)bhi_position_text(place, &array->form, difference->index, where);
    if (by == BHI_BY_MULTISET) {
        bhi_format(out->message, sizeof out->message,
                   "%s is %s, which is not expected, and %s is missing; %" PRIu64 " of %" PRIu64
                   " are wrong (%s)",
                   where, difference->got, difference->expected, difference->wrong, array->count,
                   bhi_trial_text(task, trial, run));
        return;
    }
    if (by == BHI_BY_NORM) {
        bhi_format(out->message, sizeof out->message,
                   "the relative error of %.60s is %.3g, over %.3g; %s is %s, expected %s (%s)",
                   place, difference->error, task->arrays[index].tolerance.relative, where,
                   difference->got, difference->expected, bhi_trial_text(task, trial, run));
        return;
    }
    if (difference->ulp != UINT64_MAX) {
        snprintf(steps, sizeof steps, ", %" PRIu64 " ULP", difference->ulp);
    }
    bhi_format(out->message, sizeof out->message,
               "%s is %s, expected %s%s; %" PRIu64 " of %" PRIu64 " are wrong (%s)", where,
               difference->got, difference->expected, steps, difference->wrong, array->count,
               bhi_trial_text(task, trial, run));
}

/* What the program's check says. Its message is about all outputs that are its own. */
static void tell_unchecked(const struct bhi_task *task, const struct bhi_trial *trial,
                           const char *message, bh_judgement *out) {
    char run[BHI_TRIAL_TEXT], names[96] = "";
    out->verdict = BH_JUDGE_WRONG;
    for (uint32_t i = task->array_count; i-- > 0;) {
        if (task->arrays[i].tolerance.by == BHI_BY_CHECK) {
            char others[sizeof names];
            memcpy(others, names, sizeof others);
            bhi_format(names, sizeof names, "%.60s%s%s", task->arrays[i].place, *others ? ", " : "",
                       others);
            snprintf(out->output, sizeof out->output, "%s", task->arrays[i].place);
            out->wrong = out->elements = trial->arrays[i].count;
        }
    }
    bhi_format(out->message, sizeof out->message, "%s: %.300s (%s)", names, message,
               bhi_trial_text(task, trial, run));
}

static bool find_wrong(const struct bhi_court *court, const struct bhi_trial *trial,
                       const struct bhi_launched *launched, bh_judgement *out,
                       struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = court->task;
    char message[BH_JUDGE_MESSAGE];
    for (uint32_t i = 0; i < task->array_count; i++) {
        const struct bhi_task_array *array = &task->arrays[i];
        const struct bhi_trial_array *in = &trial->arrays[i];
        struct bhi_difference difference;
        struct bhi_tolerance tolerance = array->tolerance;
        const void *got = bhi_launched_compared(launched, i);
        if (array->role == BHI_TASK_IN) {
            continue;
        }
        /* Fresh inputs may make a NaN that those of the trials did not: then nobody has said
         * what is right there. */
        if (trial->timed && tolerance.nan == BHI_NAN_REFUSED) {
            tolerance.nan = BHI_NAN_ANY;
        }
        if (bhi_trial_is_lenient(task, trial)) {
            tolerance.absolute *= BHI_LENIENCE;
            tolerance.relative *= BHI_LENIENCE;
            tolerance.ulp = tolerance.ulp < UINT64_MAX / BHI_LENIENCE ? tolerance.ulp * BHI_LENIENCE
                                                                      : UINT64_MAX;
        }
        bhi_compare_whole(array->dtype, in->count, in->expected, got, &tolerance, &difference);
        if (difference.wrong) {
            if (got != launched->outputs[i]) {
                difference.index = find_unsorted(in, got, difference.index, launched->outputs[i]);
            }
            tell_wrong(task, trial, i, &difference, out);
            return true;
        }
    }
    if (!bhi_case_check(court, trial, launched, message, outcome) || !*message) {
        return outcome->called;
    }
    tell_unchecked(task, trial, message, out);
    return true;
}

bool bhi_candidate_check(const struct bhi_court *court, const struct bhi_trial *trial,
                         const struct bhi_trial *named, const struct bhi_launched *launched,
                         bh_judgement *out, struct bhi_judge_outcome *outcome) {
    if (!find_stray(court->task, trial, launched, out) &&
        !find_wrong(court, trial, launched, out, outcome)) {
        return true;
    }
    if (!outcome->called) {
        bhi_judgement_end(court->task, named, out->verdict, out);
    }
    return false;
}

const struct bhi_trial *bhi_judgement_trial(const struct bhi_court *court, const bh_judgement *of) {
    for (size_t i = 0; i < court->trials.count && of->located; i++) {
        const struct bhi_trial *trial = &court->trials.list[i];
        char fill[BHI_FILL_TEXT];
        if (trial->size == of->size_index && trial->seed == of->seed &&
            trial->hidden == of->hidden &&
            !strcmp(bhi_trial_fill_text(court->task, trial, fill), of->fill)) {
            return trial;
        }
    }
    return NULL;
}

uint32_t bhi_judgement_array(const struct bhi_task *task, const bh_judgement *of) {
    uint32_t array = 0;
    while (array + 1 < task->array_count &&
           strncmp(task->arrays[array].place, of->output, sizeof of->output - 1) != 0) {
        array++;
    }
    return *of->output ? array : 0;
}

/* -- its runs -------------------------------------------------------------------------------- */

struct judging {
    struct bhi_court *court;
    struct bhi_judged_kernel kernel;
    struct bhi_candidate_workers workers;
    bh_judgement *out;
    struct bhi_judge_outcome *outcome;
};

static bh_stream **stream_for(struct bhi_candidate_workers *workers, bool opposite) {
    return &workers->streams[opposite && !workers->shared];
}

/* Runs |program| twice more, with the same noise, where it cannot see what is behind the arrays of
 * |exact|. Returns false if it does not run; then it is judged by the run before. */
static bool run_exact(struct judging *judging, const struct bhi_trial *trial,
                      const struct bhi_program *as, uint64_t exact, bool *out_right) {
    struct bhi_court *court = judging->court;
    struct bhi_program program = *as;
    program.exact = exact;
    *out_right = true;
    for (int i = 0; i < 2 && *out_right; i++) {
        struct bhi_judge_outcome ignored = {.status = BH_OK};
        struct bhi_launched launched;
        bh_judgement unused = {.deterministic = true};
        if (!bhi_court_launch(court, *stream_for(&judging->workers, program.opposite), &program,
                              trial, &launched, &ignored)) {
            return false;
        }
        *out_right = bhi_candidate_check(court, trial, trial, &launched, &unused, &ignored);
        bhi_launched_free(&launched);
    }
    return true;
}

/* A kernel that is wrong: is it right if there is nothing behind its arrays? Then it has read that. */
static void find_stray_read(struct judging *judging, const struct bhi_trial *trial,
                            const struct bhi_program *as) {
    const struct bhi_task *task = judging->court->task;
    char where[BHI_TRIAL_TEXT];
    bool right = false;
    const uint32_t arrays = bhi_judged_arrays(task, &judging->kernel);
    uint32_t array = 0;
    if (judging->out->verdict != BH_JUDGE_WRONG || task->robust ||
        !run_exact(judging, trial, as, UINT64_MAX, &right) || !right) {
        return;
    }
    /* A race may be right by chance. What is behind an array makes it wrong again. */
    if (!run_exact(judging, trial, as, 0, &right) || right) {
        return;
    }
    while (array < arrays && run_exact(judging, trial, as, ~(UINT64_C(1) << array), &right) &&
           right) {
        array++;
    }
    bh_judgement *out = judging->out;
    const bool named = array < arrays && !right;
    bhi_judgement_end(task, trial, BH_JUDGE_STRAY_READ, out);
    snprintf(out->output, sizeof out->output, "%s",
             named ? bhi_judged_array(task, &judging->kernel, array)->place : "");
    out->wrong = out->elements = out->rank = 0;
    out->ulp = 0;
    out->expected[0] = out->got[0] = '\0';
    bhi_format(out->message, sizeof out->message, "it reads past the end of %.60s (%s)",
               named ? out->output : "an array", bhi_trial_text(task, trial, where));
}

static void note_errors(const struct bhi_task *task, const struct bhi_trial *trial,
                        const struct bhi_launched *launched, bh_judgement *out) {
    size_t count = 0;
    for (uint32_t i = 0; i < task->array_count && !bhi_trial_is_lenient(task, trial); i++) {
        if (task->arrays[i].role == BHI_TASK_IN || task->arrays[i].tolerance.by == BHI_BY_CHECK) {
            continue;
        }
        bh_judge_error *error = &out->errors[count++];
        bhi_error_raise(task->arrays[i].dtype, trial->arrays[i].count, trial->arrays[i].expected,
                        bhi_launched_compared(launched, i), error);
        snprintf(error->output, sizeof error->output, "%s", task->arrays[i].place);
        out->error_count = count;
    }
}

bool bhi_candidate_launch(struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                          struct bhi_candidate_workers *workers, const struct bhi_trial *trial,
                          unsigned turn, struct bhi_program *program, struct bhi_launched *out,
                          struct bhi_judge_outcome *outcome) {
    const bool opposite = turn % 2 && kernel->steps[0].opposite;
    bh_stream **stream = stream_for(workers, opposite);
    *program = (struct bhi_program){.kernel = kernel,
                                    .groups = &court->task->groups,
                                    .number = turn == 1 ? BHI_NO_NOISE : 0,
                                    .opposite = opposite,
                                    .rack = turn == 1 ? NULL : &workers->racks[opposite]};
    return (*stream || bhi_court_stream(court, stream, outcome)) &&
           bhi_court_launch(court, *stream, program, trial, out, outcome);
}

void bhi_candidate_workers_close(struct bhi_candidate_workers *workers) {
    for (int i = 0; i < 2; i++) {
        bh_stream_release(workers->streams[i]);
        workers->streams[i] = NULL;
        bhi_rack_close(&workers->racks[i]);
    }
}

/* Runs it for time |turn|, from 0 on. Returns false if it has been judged, or cannot be. */
static bool run_once(struct judging *judging, const struct bhi_trial *trial, unsigned turn,
                     struct bhi_launched *launched) {
    struct bhi_court *court = judging->court;
    struct bhi_program program;
    if (!bhi_candidate_launch(court, &judging->kernel, &judging->workers, trial, turn, &program,
                              launched, judging->outcome)) {
        bhi_judgement_fail(court->task, trial, judging->outcome, judging->out);
        return false;
    }
    judging->out->runs++;
    if (!bhi_candidate_check(court, trial, trial, launched, judging->out, judging->outcome)) {
        if (judging->outcome->called) {
            bhi_judgement_fail(court->task, trial, judging->outcome, judging->out);
        }
        bhi_launched_free(launched);
        program.number = launched->number;
        program.rack = &judging->workers.racks[program.opposite];
        find_stray_read(judging, trial, &program);
        return false;
    }
    note_errors(court->task, trial, launched, judging->out);
    return true;
}

/* With |trial->repeats| again, in other buffers, and once without noise: a kernel that takes what an earlier
 * run left, or that looks for noise, is wrong now, and one that is not deterministic is noticed. Every second time
 * its workgroups come in the opposite order. */
static bool run_again(struct judging *judging, const struct bhi_trial *trial) {
    const unsigned runs = bhi_trial_runs(judging->court->task, trial);
    uint64_t first = 0;
    for (unsigned i = 0; i < runs; i++) {
        struct bhi_launched launched;
        if (!run_once(judging, trial, i, &launched)) {
            if (i % 2 && judging->kernel.steps[0].opposite) {
                bhi_text_append(
                    judging->out->message, sizeof judging->out->message,
                    "; repeated, with other noise and workgroups in the opposite order");
            }
            return false;
        }
        const uint64_t digest = bhi_launched_digest(judging->court->task, trial, &launched);
        judging->out->deterministic &= !i || digest == first;
        first = digest;
        bhi_launched_free(&launched);
    }
    return true;
}

static bool run_trial(struct judging *judging, const struct bhi_trial *trial) {
    struct bhi_court *court = judging->court;
    struct bhi_recalled known;
    if (!bhi_expected_recall(court, trial, &known, judging->outcome)) {
        bhi_judgement_fail(court->task, trial, judging->outcome, judging->out);
        return false;
    }
    const bool good = run_again(judging, &known.trial);
    bhi_recalled_free(court->task, &known);
    return good;
}

/* Nothing is known but the kernel. */
static void begin(struct judging *judging) {
    const struct bhi_judged_kernel *kernel = &judging->kernel;
    bh_judgement *out = judging->out;
    *out = (bh_judgement){.struct_size = sizeof *out, .deterministic = true};
    snprintf(out->name, sizeof out->name, "%s", kernel->name);
    out->hashed = kernel->has_content;
    memcpy(out->content, kernel->content, sizeof out->content);
}

static void run_all(struct judging *judging, bool shared) {
    struct bhi_court *court = judging->court;
    bh_judgement *out = judging->out;
    bh_stream **const stream = &judging->workers.streams[0];
    judging->workers.shared = shared;
    if (!bhi_court_check_kernel(court, &judging->kernel, &court->task->groups, judging->outcome) ||
        !(shared ? bhi_court_borrow(court, stream, judging->outcome)
                 : bhi_court_stream(court, stream, judging->outcome))) {
        bhi_judgement_fail(court->task, NULL, judging->outcome, out);
        return;
    }
    for (size_t i = 0; i < court->trials.count; i++) {
        if (!run_trial(judging, &court->trials.list[i])) {
            break;
        }
    }
    if (shared && out->verdict == BH_JUDGE_CORRECT) {
        bhi_court_return(court, *stream);
        *stream = NULL;
    }
    bhi_candidate_workers_close(&judging->workers);
}

/* Who is not CORRECT on a worker that others had is judged on one of its own. */
static void run_alone_at_last(struct judging *judging) {
    const bool shared = judging->court->shares;
    run_all(judging, shared);
    if (shared && judging->out->verdict != BH_JUDGE_CORRECT && !judging->outcome->called) {
        *judging->outcome = (struct bhi_judge_outcome){.status = BH_OK};
        begin(judging);
        run_all(judging, false);
    }
}

/* Zeros in workgroup memory would hide that a kernel reads it before it writes it. */
static uint32_t draw_noise(struct bhi_court *court) {
    enum { OF_SHARED = 0x53686172 }; /* no run's noise has this counter */
    const uint32_t number = (uint32_t)atomic_fetch_add(&court->runs, 1);
    return bhi_philox(court->noise_seed, (struct bhi_philox){{number, OF_SHARED, OF_SHARED, 0}})
               .words[0] |
           3; /* odd, and its opposite is not 0 */
}

bool bhi_candidate_make(struct bhi_court *court, const struct bhi_kernel_file *file,
                        struct bhi_judged_kernel *out, struct bhi_judge_outcome *outcome) {
    struct bhi_kernel_file timely = *file;
    timely.deadline_ns = court->task->compile_deadline_ns;
    return bhi_judged_kernel_make(court, &timely, false, draw_noise(court), out, outcome);
}

bool bhi_candidate_try(struct bhi_court *court, struct bhi_candidate *candidate,
                       struct bhi_judge_outcome *outcome) {
    bh_judgement *out = &candidate->judgement;
    struct judging judging = {.court = court, .out = out, .outcome = outcome};
    *outcome = (struct bhi_judge_outcome){.status = BH_OK};
    const bool made = bhi_candidate_make(court, &candidate->file, &judging.kernel, outcome);
    begin(&judging);
    if (made) {
        run_alone_at_last(&judging);
        bhi_judged_kernel_free(&judging.kernel);
    } else {
        bhi_judgement_fail(court->task, NULL, outcome, out);
    }
    candidate->judged = out->verdict != BH_JUDGE_FAILED || !bhi_judge_outcome_is_doubtful(outcome);
    return out->verdict != BH_JUDGE_FAILED || !bhi_judge_outcome_is_elsewhere(outcome);
}

bool bhi_candidate_judge(struct bhi_court *court, struct bhi_candidate *candidate,
                         struct bhi_judge_outcome *outcome) {
    bool known = true;
    candidate->judged = false;
    for (int i = 0; i < ATTEMPTS && known && !candidate->judged; i++) {
        known = bhi_candidate_try(court, candidate, outcome);
    }
    candidate->judged = known;
    return known;
}
