#include "judge/check/repeat.h"

#include <string.h>

#include "judge/check/launch.h"

static bool is_text_of(const struct bhi_trial_array *in, uint64_t index, const char *expected) {
    const uint64_t size = in->form.bytes / in->count;
    char text[BHI_ELEMENT_TEXT];
    uint64_t bits = 0;
    memcpy(&bits, (const uint8_t *)in->expected + index * size, size);
    return !strcmp(bhi_element_text(in->form.dtype, bits, text), expected);
}

/* Has the reference computed what the judgement says was expected? Files of the task may have
 * changed, and the reference. */
static bool is_expected(const struct bhi_task *task, const struct bhi_trial *trial,
                        const bh_judgement *of) {
    const uint32_t array = bhi_judgement_array(task, of);
    const struct bhi_trial_array *in = &trial->arrays[array];
    const enum bhi_comparison by = task->arrays[array].tolerance.by;
    uint64_t index;
    if (of->verdict != BH_JUDGE_WRONG || by == BHI_BY_CHECK) {
        return true;
    }
    if (!in->expected || of->rank != in->form.dimensions ||
        (index = bhi_position_index(&in->form, of->index)) >= in->count) {
        return false;
    }
    if (by != BHI_BY_MULTISET) {
        return is_text_of(in, index, of->expected);
    }
    for (index = 0; index < in->count && !is_text_of(in, index, of->expected);) {
        index++; /* what is missing has no place */
    }
    return index < in->count;
}

/* After a failure *out holds nothing. */
static bool find_trial(struct bhi_court *court, const bh_judgement *of, struct bhi_recalled *out,
                       struct bhi_judge_outcome *outcome) {
    const struct bhi_trial *trial = bhi_judgement_trial(court, of);
    if (trial && !bhi_expected_recall(court, trial, out, outcome)) {
        return false;
    }
    if (trial && is_expected(court->task, &out->trial, of)) {
        return true;
    }
    bhi_recalled_free(court->task, out);
    bhi_judge_outcome_fail(outcome, BH_INVALID_ARGUMENT,
                           "the judgement is of another task, of files that have changed since, or "
                           "of other hidden seeds");
    bhi_judge_outcome_why(outcome, BH_REASON_ARGUMENT, BH_SUBJECT_ARGUMENT, "judgement");
    return false;
}

/* Wrong is what a run leaves, or what it leaves where no noise is, or a later one: nobody knows which it was. */
static bool run(struct bhi_court *court, const struct bhi_judged_kernel *kernel,
                struct bhi_candidate_workers *workers, const struct bhi_trial *trial,
                struct bhi_launched *out, struct bhi_judge_outcome *outcome) {
    const unsigned runs = bhi_trial_runs(court->task, trial);
    struct bhi_program program;
    bh_judgement unused = {.deterministic = true};
    for (unsigned i = 0;; i++) {
        if (!bhi_candidate_launch(court, kernel, workers, trial, i, &program, out, outcome)) {
            return false;
        }
        if (i + 1 >= runs || !bhi_candidate_check(court, trial, trial, out, &unused, outcome)) {
            break;
        }
        bhi_launched_free(out);
    }
    if (outcome->called) {
        bhi_launched_free(out);
    }
    return !outcome->called;
}

static bool make_and_run(struct bhi_court *court, const struct bhi_candidate *candidate,
                         struct bhi_repeated *out, struct bhi_judge_outcome *outcome) {
    const bh_judgement *of = &candidate->judgement;
    struct bhi_judged_kernel kernel;
    struct bhi_candidate_workers workers = {0};
    bool good = bhi_candidate_make(court, &candidate->file, &kernel, outcome);
    if (of->hashed && kernel.has_content &&
        memcmp(of->content, kernel.content, sizeof of->content) != 0) {
        bhi_judge_outcome_fail(outcome, BH_LOAD_FAILED,
                               "%.500s: the code has changed since it was judged",
                               candidate->file.path);
        good = false;
    }
    if (good) {
        good = run(court, &kernel, &workers, &out->known.trial, &out->launched, outcome);
        bhi_candidate_workers_close(&workers);
    }
    bhi_judged_kernel_free(&kernel);
    return good;
}

bool bhi_candidate_repeat(struct bhi_court *court, const struct bhi_candidate *candidate,
                          struct bhi_repeated *out, struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_repeated){.known = {.made = false}};
    *outcome = (struct bhi_judge_outcome){.status = BH_OK};
    const bool good = find_trial(court, &candidate->judgement, &out->known, outcome) &&
                      (candidate->judgement.verdict == BH_JUDGE_FAILED ||
                       make_and_run(court, candidate, out, outcome));
    if (!good) {
        bhi_repeated_free(court->task, out);
    }
    return good;
}

void bhi_repeated_free(const struct bhi_task *task, struct bhi_repeated *repeated) {
    bhi_recalled_free(task, &repeated->known);
    bhi_launched_free(&repeated->launched);
}
