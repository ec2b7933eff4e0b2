#include "judge/check/case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/text.h"

/* What is given, and what that borrows. */
struct given {
    bh_judge_case one;
    bh_judge_array arrays[BHI_TASK_ARRAYS];
    bh_judge_number sizes[BHI_TASK_PARAMETERS], pushes[BHI_TASK_PUSHES];
    void *inputs[BHI_TASK_ARRAYS]; /* that the trial does not keep; owned */
    char size_texts[BHI_TASK_PARAMETERS][BHI_PUSH_TEXT], push_texts[BHI_TASK_PUSHES][BHI_PUSH_TEXT];
    char text[BHI_TRIAL_TEXT];
};

static bh_judge_number number_of(const char *name, const char *text) {
    bh_judge_number out = {.name = name, .text = text, .value = strtod(text, NULL)};
    if (!strcmp(text, "true")) {
        out.value = 1;
        out.whole = 1;
    } else if (!strpbrk(text, ".e")) {
        out.whole = *text == '-' ? strtoll(text, NULL, 10) : (int64_t)strtoull(text, NULL, 10);
    }
    return out;
}

static bool give_arrays(const struct bhi_task *task, const struct bhi_trial *trial,
                        void *const after[], struct given *out) {
    for (size_t i = 0; i < task->array_count; i++) {
        const struct bhi_trial_array *in = &trial->arrays[i];
        if (task->arrays[i].role != BHI_TASK_OUT && !in->before) {
            if (!(out->inputs[i] = malloc(in->form.bytes))) {
                return false;
            }
            bhi_trial_write(in, in->count, out->inputs[i]);
        }
        out->arrays[i] = (bh_judge_array){.name = task->arrays[i].place,
                                          .dtype = in->form.dtype,
                                          .rank = in->form.dimensions,
                                          .shape = in->form.shape,
                                          .count = in->count,
                                          .bytes = in->form.bytes,
                                          .before = in->before ? in->before : out->inputs[i],
                                          .after = after[i]};
    }
    return true;
}

static void take_back(struct given *given) {
    for (size_t i = 0; i < BHI_TASK_ARRAYS && given; i++) {
        free(given->inputs[i]);
    }
    free(given);
}

static bool give(const struct bhi_court *court, const struct bhi_trial *trial, void *const after[],
                 struct given *out, struct bhi_complaint *complaint) {
    const struct bhi_task *task = court->task;
    const uint64_t seed = bhi_court_push_seed(court, trial);
    if (!give_arrays(task, trial, after, out)) {
        return bhi_refuse_memory(complaint);
    }
    for (size_t i = 0; i < task->parameter_count; i++) {
        snprintf(out->size_texts[i], BHI_PUSH_TEXT, "%" PRIu64, task->sizes[trial->size].values[i]);
        out->sizes[i] = number_of(task->parameters[i], out->size_texts[i]);
    }
    for (size_t i = 0; i < task->push_count; i++) {
        if (!bhi_task_push_value(task, trial->size, i, seed, out->push_texts[i], complaint)) {
            return false;
        }
        out->pushes[i] = number_of(task->pushes[i].name, out->push_texts[i]);
    }
    out->one = (bh_judge_case){.struct_size = sizeof out->one,
                               .arrays = out->arrays,
                               .array_count = (uint32_t)task->array_count,
                               .size_count = (uint32_t)task->parameter_count,
                               .sizes = out->sizes,
                               .pushes = out->pushes,
                               .push_count = (uint32_t)task->push_count,
                               .text = bhi_trial_text(task, trial, out->text)};
    return true;
}

static bool call(const struct bhi_court *court, const struct given *given,
                 struct bhi_judge_outcome *outcome) {
    bh_detail detail = {0};
    char why[sizeof detail.message + 2] = "";
    const bh_status status = court->callback(&given->one, &detail, court->callback_user);
    detail.message[sizeof detail.message - 1] = '\0';
    if (status != BH_OK && detail.message[0]) {
        snprintf(why, sizeof why, ": %s", detail.message);
    }
    return status == BH_OK ||
           bhi_judge_outcome_fail(outcome, status, "its callback fails%.300s (%s)", why,
                                  given->text);
}

bool bhi_case_refer(const struct bhi_court *court, const struct bhi_trial *trial,
                    struct bhi_launched *out, struct bhi_judge_outcome *outcome) {
    struct given *given = calloc(1, sizeof *given);
    struct bhi_complaint complaint;
    bool good = given;
    *out = (struct bhi_launched){0};
    for (uint32_t i = 0; i < court->task->array_count && good; i++) {
        if (court->task->arrays[i].role != BHI_TASK_IN) {
            good = (out->outputs[i] = calloc(1, trial->arrays[i].form.bytes));
        }
    }
    good = good ? (give(court, trial, out->outputs, given, &complaint) ||
                   bhi_judge_outcome_refuse(outcome, BH_INVALID_ARGUMENT, &complaint)) &&
                      call(court, given, outcome)
                : bhi_judge_outcome_memory(outcome);
    if (!good) {
        bhi_launched_free(out);
    }
    take_back(given);
    return good && bhi_launched_sort(court->task, trial, out, outcome);
}

/* Returns false with |outcome| filled in. */
static bool call_check(const struct bhi_court *court, const struct bhi_trial *trial,
                       const struct bhi_launched *launched, struct given *given,
                       char message[BH_JUDGE_MESSAGE], struct bhi_judge_outcome *outcome) {
    struct bhi_complaint complaint;
    char said[BH_JUDGE_MESSAGE] = "";
    if (!give(court, trial, launched->outputs, given, &complaint)) {
        return bhi_judge_outcome_refuse(outcome, BH_INVALID_ARGUMENT, &complaint);
    }
    for (size_t i = 0; i < court->task->array_count; i++) {
        given->arrays[i].expected = trial->arrays[i].expected;
    }
    const bh_status status = court->check(&given->one, said, court->check_user);
    said[sizeof said - 1] = '\0';
    (void)bhi_text_clean(message, BH_JUDGE_MESSAGE, said);
    return status == BH_OK || bhi_judge_outcome_fail(outcome, status, "the check fails%s%s (%s)",
                                                     *message ? ": " : "", message, given->text);
}

bool bhi_case_check(const struct bhi_court *court, const struct bhi_trial *trial,
                    const struct bhi_launched *launched, char message[BH_JUDGE_MESSAGE],
                    struct bhi_judge_outcome *outcome) {
    *message = '\0';
    if (!court->check) {
        return true;
    }
    struct given *given = calloc(1, sizeof *given);
    const bool good = given ? call_check(court, trial, launched, given, message, outcome)
                            : bhi_judge_outcome_memory(outcome);
    take_back(given);
    outcome->called = !good;
    return good;
}
