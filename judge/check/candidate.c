#include "judge/check/candidate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "judge/check/launch.h"
#include "judge/check/position.h"
#include "request/kernel_file.h"

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
    };
    const bool known = (unsigned)verdict < sizeof names / sizeof names[0] && names[verdict];
    return known ? names[verdict] : bh_status_name(status);
}

/* -- what came out ------------------------------------------------------------------------------
 */

/* Writes "n=64, seed 1" of the trial. */
static const char *describe(const struct bhi_task *task, const struct bhi_trial *trial,
                            char out[BHI_SIZE_TEXT + 64]) {
    char size[BHI_SIZE_TEXT];
    if (trial->timed) {
        bhi_format(out, BHI_SIZE_TEXT + 64, "%s, a timed run",
                   bhi_task_size_text(task, trial->size, size));
        return out;
    }
    bhi_format(out, BHI_SIZE_TEXT + 64, "%s, %sseed %" PRIu64,
               bhi_task_size_text(task, trial->size, size), trial->hidden ? "hidden " : "",
               trial->seed);
    return out;
}

static bool find_stray(const struct bhi_task *task, const struct bhi_trial *trial,
                       const struct bhi_launched *launched, struct bhi_candidate *out) {
    char where[BHI_SIZE_TEXT + 64];
    if (!launched->strayed) {
        return false;
    }
    const uint64_t size = trial->arrays[launched->stray_array].form.bytes;
    const bool before = launched->stray_offset < 0;
    out->verdict = BH_JUDGE_STRAY_WRITE;
    out->array = launched->stray_array;
    bhi_format(out->outcome.message, sizeof out->outcome.message,
               "it wrote %" PRId64 " bytes %s of %.60s (%s)",
               before ? -launched->stray_offset : launched->stray_offset - (int64_t)size + 1,
               before ? "in front" : "past the end", task->arrays[out->array].place,
               describe(task, trial, where));
    return true;
}

static bool find_wrong(const struct bhi_task *task, const struct bhi_trial *trial,
                       const struct bhi_launched *launched, struct bhi_candidate *out) {
    char where[BHI_POSITION_TEXT], run[BHI_SIZE_TEXT + 64], steps[48] = "";
    for (uint32_t i = 0; i < task->array_count; i++) {
        const struct bhi_task_array *array = &task->arrays[i];
        const struct bhi_trial_array *in = &trial->arrays[i];
        struct bhi_difference *difference = &out->difference;
        struct bhi_tolerance tolerance = array->tolerance;
        if (array->role == BHI_TASK_IN) {
            continue;
        }
        /* Fresh inputs may make a NaN that those of the trials did not: then nobody has said
         * what is right there. */
        if (trial->timed && tolerance.nan == BHI_NAN_REFUSED) {
            tolerance.nan = BHI_NAN_ANY;
        }
        bhi_compare(array->dtype, in->count, in->expected, launched->outputs[i], &tolerance,
                    difference);
        if (!difference->wrong) {
            continue;
        }
        out->verdict = BH_JUDGE_WRONG;
        out->array = i;
        if (difference->ulp != UINT64_MAX) {
            snprintf(steps, sizeof steps, ", %" PRIu64 " ULP", difference->ulp);
        }
        bhi_format(out->outcome.message, sizeof out->outcome.message,
                   "%s is %s, expected %s%s; %" PRIu64 " of %" PRIu64 " are wrong (%s)",
                   bhi_position_text(array->place, &in->form, difference->index, where),
                   difference->got, difference->expected, steps, difference->wrong, in->count,
                   describe(task, trial, run));
        return true;
    }
    return false;
}

bool bhi_candidate_check(const struct bhi_task *task, const struct bhi_trial *trial,
                         const struct bhi_trial *named, const struct bhi_launched *launched,
                         struct bhi_candidate *out) {
    if (!find_stray(task, trial, launched, out) && !find_wrong(task, trial, launched, out)) {
        return true;
    }
    out->trial = named;
    return false;
}

static bool is_same(const struct bhi_task *task, const struct bhi_trial *trial,
                    const struct bhi_launched *a, const struct bhi_launched *b) {
    for (uint32_t i = 0; i < task->array_count; i++) {
        if (task->arrays[i].role != BHI_TASK_IN &&
            memcmp(a->outputs[i], b->outputs[i], trial->arrays[i].form.bytes) != 0) {
            return false;
        }
    }
    return true;
}

/* -- its runs -----------------------------------------------------------------------------------
 */

struct judging {
    struct bhi_court *court;
    bh_stream *stream;
    struct bhi_judged_kernel kernel;
    struct bhi_candidate *out;
};

/* Returns false if it has been judged, or cannot be. */
static bool run_once(struct judging *judging, const struct bhi_trial *trial,
                     struct bhi_launched *launched) {
    struct bhi_court *court = judging->court;
    struct bhi_candidate *out = judging->out;
    if (!bhi_court_launch(court, judging->stream, &judging->kernel, &court->task->groups, trial,
                          launched, &out->outcome)) {
        out->verdict = BH_JUDGE_FAILED;
        out->trial = trial;
        return false;
    }
    out->runs++;
    if (!bhi_candidate_check(court->task, trial, trial, launched, out)) {
        bhi_launched_free(launched);
        return false;
    }
    return true;
}

/* With |trial->repeats| once more, in other buffers: a kernel that takes what an earlier run left
 * is wrong now, and one that is not deterministic is noticed. */
static bool run_trial(struct judging *judging, const struct bhi_trial *trial) {
    const struct bhi_task *task = judging->court->task;
    struct bhi_launched first, second;
    if (!run_once(judging, trial, &first)) {
        return false;
    }
    bool good = true;
    if (trial->repeats && (good = run_once(judging, trial, &second))) {
        judging->out->nondeterministic |= !is_same(task, trial, &first, &second);
        bhi_launched_free(&second);
    }
    bhi_launched_free(&first);
    return good;
}

static void run_all(struct judging *judging) {
    struct bhi_court *court = judging->court;
    struct bhi_judge_outcome *outcome = &judging->out->outcome;
    if (!bhi_court_check_kernel(court, &judging->kernel, outcome) ||
        !bhi_court_stream(court, &judging->stream, outcome)) {
        judging->out->verdict = BH_JUDGE_FAILED;
        return;
    }
    for (size_t i = 0; i < court->trials.count; i++) {
        if (!run_trial(judging, &court->trials.list[i])) {
            break;
        }
    }
    bh_stream_release(judging->stream);
}

static void judge_once(struct bhi_court *court, const struct bhi_kernel_file *file,
                       struct bhi_candidate *out) {
    struct judging judging = {.court = court, .out = out};
    *out = (struct bhi_candidate){.path = file->path, .file = *file, .verdict = BH_JUDGE_CORRECT};
    out->file.deadline_ns = court->task->compile_deadline_ns;
    bhi_kernel_file_name(file->path, out->name);
    const bool made =
        bhi_judged_kernel_make(&out->file, false, court->context, &judging.kernel, &out->outcome);
    out->has_content = judging.kernel.has_content;
    memcpy(out->content, judging.kernel.content, sizeof out->content);
    if (!made) {
        out->verdict = BH_JUDGE_FAILED;
        return;
    }
    run_all(&judging);
    bhi_judged_kernel_free(&judging.kernel);
}

/* Judges it once: out->judged is false if its worker may have ended because of others. */
static bool try_once(struct bhi_court *court, const struct bhi_kernel_file *file,
                     struct bhi_candidate *out) {
    judge_once(court, file, out);
    const bool failed = out->verdict == BH_JUDGE_FAILED;
    if (failed && bhi_judge_outcome_is_elsewhere(&out->outcome)) {
        return false;
    }
    out->judged = !failed || !bhi_judge_outcome_is_doubtful(&out->outcome);
    return true;
}

bool bhi_candidate_try(struct bhi_court *court, const struct bhi_kernel_file *file,
                       struct bhi_candidate *out) {
    const struct bhi_kernel_file copy = *file; /* it may be a part of |out| */
    return try_once(court, &copy, out);
}

bool bhi_candidate_judge(struct bhi_court *court, const struct bhi_kernel_file *file,
                         struct bhi_candidate *out) {
    const struct bhi_kernel_file copy = *file;
    for (int i = 0; i < ATTEMPTS; i++) {
        if (!try_once(court, &copy, out)) {
            return false;
        }
        if (out->judged) {
            return true;
        }
    }
    out->judged = true;
    return true;
}

void bhi_candidate_free(struct bhi_candidate *candidate) {
    free(candidate->timings);
    candidate->timings = NULL;
    candidate->timing_count = 0;
}
