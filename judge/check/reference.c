/* The reference: computes what is expected in each trial. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "judge/check/case.h"
#include "judge/check/content.h"
#include "judge/check/kernel_make.h"
#include "judge/check/reference.h"
#include "judge/data/whole.h"

enum { KNOWN = 2 }; /* times the bytes of the largest trial */

struct runner {
    struct bhi_court *court;
    bh_stream *stream;
    struct bhi_program program;
};

/* After a failure *out holds nothing. */
static bool run_once(const struct runner *runner, const struct bhi_trial *trial,
                     struct bhi_launched *out, struct bhi_judge_outcome *outcome) {
    if (!bhi_court_launch(runner->court, runner->stream, &runner->program, trial, out, outcome)) {
        return false;
    }
    if (out->strayed) {
        bhi_launched_free(out);
        return bhi_judge_outcome_fail(outcome, BH_INVALID_ARGUMENT,
                                      "it writes outside of output %s", out->stray_place);
    }
    return true;
}

/* Says that it computes different bytes. */
static bool refuse_variation(const struct bhi_task *task, const struct bhi_trial *trial,
                             uint32_t index, const uint8_t *a, const uint8_t *b, bool strays,
                             struct bhi_judge_outcome *outcome) {
    const struct bhi_trial_array *array = &trial->arrays[index];
    const uint64_t size = array->form.bytes / array->count;
    char where[BHI_POSITION_TEXT], which[BHI_TRIAL_TEXT], first[BHI_ELEMENT_TEXT],
        second[BHI_ELEMENT_TEXT];
    uint64_t i = 0, x = 0, y = 0;
    while (!memcmp(a + i * size, b + i * size, size)) {
        i++;
    }
    memcpy(&x, a + i * size, size);
    memcpy(&y, b + i * size, size);
    return bhi_judge_outcome_fail(
        outcome, BH_INVALID_ARGUMENT, "it %s: %s is %s, and with the same inputs %s (%s)",
        strays ? "reads past the end of an array" : "is not deterministic",
        bhi_position_text(task->arrays[index].place, &array->form, i, where),
        bhi_element_text(task->arrays[index].dtype, x, first),
        bhi_element_text(task->arrays[index].dtype, y, second), bhi_trial_text(task, trial, which));
}

static bool check_nan(const struct bhi_task *task, const struct bhi_trial *trial,
                      struct bhi_judge_outcome *outcome) {
    for (uint32_t i = 0; i < task->array_count; i++) {
        const struct bhi_task_array *array = &task->arrays[i];
        const struct bhi_trial_array *in = &trial->arrays[i];
        char where[BHI_POSITION_TEXT], which[BHI_TRIAL_TEXT];
        uint64_t at;
        if (array->role == BHI_TASK_IN || array->tolerance.nan != BHI_NAN_REFUSED ||
            !bhi_find_nan(array->dtype, in->count, in->expected, &at)) {
            continue;
        }
        return bhi_judge_outcome_fail(
            outcome, BH_INVALID_ARGUMENT,
            "it computes a NaN: %s (%s); the task must say what a candidate may "
            "compute there: \"nan\": \"equal\" (a NaN) or \"any\"",
            bhi_position_text(array->place, &in->form, at, where),
            bhi_trial_text(task, trial, which));
    }
    return true;
}

/* What is behind arrays is noise, which differs in two runs: is that the cause? */
static bool reads_past(const struct runner *runner, const struct bhi_trial *trial) {
    struct bhi_judge_outcome ignored = {.status = BH_OK};
    struct runner exact = *runner;
    uint64_t digests[2] = {0};
    bool runs = !runner->court->task->robust;
    exact.program.exact = UINT64_MAX;
    for (int i = 0; i < 2 && runs; i++) {
        struct bhi_launched launched = {.strayed = false};
        runs = run_once(&exact, trial, &launched, &ignored);
        digests[i] = runs ? bhi_launched_digest(runner->court->task, trial, &launched) : 0;
        bhi_launched_free(&launched);
    }
    return runs && digests[0] == digests[1];
}

void bhi_launched_expect(const struct bhi_task *task, struct bhi_launched *launched,
                         struct bhi_trial *trial) {
    for (uint32_t i = 0; i < task->array_count; i++) {
        void **const from = launched->sorted[i] ? &launched->sorted[i] : &launched->outputs[i];
        trial->arrays[i].expected = *from;
        *from = NULL;
    }
    bhi_launched_free(launched);
}

/* Runs it twice; the first outputs become what is expected. */
static bool run_twice(const struct runner *runner, struct bhi_trial *trial,
                      struct bhi_judge_outcome *outcome) {
    const struct bhi_task *task = runner->court->task;
    struct bhi_launched first, second;
    if (!run_once(runner, trial, &first, outcome)) {
        return false;
    }
    bhi_launched_expect(task, &first, trial);
    if (!run_once(runner, trial, &second, outcome)) {
        return false;
    }
    bool good = true;
    for (uint32_t i = 0; i < task->array_count && good; i++) {
        const struct bhi_trial_array *array = &trial->arrays[i];
        const void *again = bhi_launched_compared(&second, i);
        if (array->expected && memcmp(array->expected, again, array->form.bytes) != 0) {
            good = refuse_variation(task, trial, i, array->expected, again,
                                    reads_past(runner, trial), outcome);
        }
    }
    bhi_launched_free(&second);
    return good;
}

/* Infinities and NaNs may hang on rounding where inputs are sorted or equal. */
static bool is_finite(const struct bhi_task *task, const struct bhi_trial *trial) {
    for (uint32_t i = 0; i < task->array_count; i++) {
        const struct bhi_trial_array *in = &trial->arrays[i];
        if (task->arrays[i].role != BHI_TASK_IN &&
            !bhi_is_finite(task->arrays[i].dtype, in->count, in->expected)) {
            return false;
        }
    }
    return true;
}

static bool is_called(const struct bhi_court *court) {
    return court->task->reference == BHI_REFERENCE_CALLBACK;
}

/* A callback is trusted, and sees no noise: it is called once. */
static bool call_once(const struct bhi_court *court, struct bhi_trial *trial,
                      struct bhi_judge_outcome *outcome) {
    struct bhi_launched launched;
    const bool good = bhi_case_refer(court, trial, &launched, outcome);
    if (good) {
        bhi_launched_expect(court->task, &launched, trial);
    }
    return good;
}

/* A usual fill with which the reference cannot judge is dropped: nobody has asked for it. But what a
 * callback returns is for the program to see. */
static bool run_all(const struct runner *runner, struct bhi_judge_outcome *outcome) {
    struct bhi_court *court = runner->court;
    for (size_t i = 0; i < court->trials.count;) {
        struct bhi_trial *trial = &court->trials.list[i];
        const bool lenient = bhi_trial_is_lenient(court->task, trial);
        const bool computed =
            is_called(court) ? call_once(court, trial, outcome) : run_twice(runner, trial, outcome);
        const bool good = computed && check_nan(court->task, trial, outcome);
        if (lenient && (computed || !is_called(court)) &&
            (good ? !is_finite(court->task, trial) : outcome->status == BH_INVALID_ARGUMENT)) {
            *outcome = (struct bhi_judge_outcome){.status = BH_OK};
            bhi_trials_drop(court->task, &court->trials, i);
        } else if (good && (bhi_trials_forget(court->task, &court->trials, KNOWN) ||
                            bhi_judge_outcome_memory(outcome))) {
            i++;
        } else {
            return false;
        }
    }
    return true;
}

/* Puts in front of the message where the task names the kernel. Returns false. */
static bool blame_kernel(const struct bhi_task *task, struct bhi_judge_outcome *outcome) {
    const struct bhi_judge_outcome inner = *outcome;
    bhi_format(outcome->message, sizeof outcome->message, "%.250s: %.340s",
               task->reference_kernel.field, inner.message);
    return false;
}

static bool open_kernel(struct bhi_reference *reference, struct bhi_judge_outcome *outcome) {
    struct bhi_court *court = reference->court;
    const struct bhi_kernel_file file = {.path = court->task->reference_kernel.path,
                                         .deadline_ns = court->task->compile_deadline_ns};
    return (bhi_judged_kernel_make(court, &file, false, 0, &reference->kernel, outcome) &&
            bhi_court_check_kernel(court, &reference->kernel, &court->task->reference_groups,
                                   outcome)) ||
           blame_kernel(court->task, outcome);
}

bool bhi_reference_open(struct bhi_court *court, struct bhi_reference *out,
                        struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_reference){.court = court};
    const bool good = bhi_court_reference_stream(court, &out->stream, outcome) &&
                      (court->task->reference != BHI_REFERENCE_KERNEL || open_kernel(out, outcome));
    if (!good) {
        bhi_reference_close(out);
    }
    return good;
}

void bhi_reference_close(struct bhi_reference *reference) {
    bhi_judged_kernel_free(&reference->kernel);
    bhi_reference_template_free(&reference->cache);
    bh_stream_release(reference->stream);
    bhi_rack_close(&reference->rack);
    *reference = (struct bhi_reference){0};
}

static struct runner runner_of(struct bhi_reference *reference) {
    struct bhi_court *court = reference->court;
    const bool is_kernel = court->task->reference == BHI_REFERENCE_KERNEL;
    return (struct runner){.court = court,
                           .stream = reference->stream,
                           .program = {.kernel = is_kernel ? &reference->kernel : NULL,
                                       .groups = &court->task->reference_groups,
                                       .cache = &reference->cache,
                                       .rack = &reference->rack}};
}

/* Of files: the inputs are always those of the only trial, and so is what is expected. */
static bool copy_expected(const struct bhi_court *court, struct bhi_launched *out,
                          struct bhi_judge_outcome *outcome) {
    const struct bhi_trial *trial = &court->trials.list[0];
    bool good = true;
    *out = (struct bhi_launched){0};
    for (uint32_t i = 0; i < court->task->array_count && good; i++) {
        const struct bhi_trial_array *array = &trial->arrays[i];
        if (court->task->arrays[i].role != BHI_TASK_IN) {
            good = (out->outputs[i] = bhi_content_room(array->form.bytes));
        }
        if (out->outputs[i]) {
            memcpy(out->outputs[i], array->expected, array->form.bytes);
        }
    }
    if (!good) {
        bhi_launched_free(out);
        return bhi_judge_outcome_memory(outcome);
    }
    return bhi_launched_sort(court->task, trial, out, outcome);
}

bool bhi_reference_compute(struct bhi_reference *reference, const struct bhi_trial *trial,
                           struct bhi_launched *out, struct bhi_judge_outcome *outcome) {
    const struct bhi_court *court = reference->court;
    const struct runner runner = runner_of(reference);
    return is_called(court) ? bhi_case_refer(court, trial, out, outcome)
           : court->task->reference == BHI_REFERENCE_FILES ? copy_expected(court, out, outcome)
                                                           : run_once(&runner, trial, out, outcome);
}

/* What is expected of all trials is from the same files. */
static void sort_files(struct bhi_court *court) {
    for (size_t i = 0; i < court->trials.count; i++) {
        for (uint32_t k = 0; k < court->task->array_count; k++) {
            const struct bhi_trial_array *array = &court->trials.list[i].arrays[k];
            if (court->task->arrays[k].tolerance.by == BHI_BY_MULTISET) {
                bhi_sort_multiset(array->form.dtype, array->count, array->expected);
            }
        }
    }
}

bool bhi_reference_run(struct bhi_court *court, struct bhi_judge_outcome *outcome) {
    struct bhi_reference reference;
    if (court->task->reference == BHI_REFERENCE_FILES) {
        if (!check_nan(court->task, &court->trials.list[0], outcome)) {
            return false;
        }
        sort_files(court);
    }
    if (!bhi_reference_open(court, &reference, outcome)) {
        return false;
    }
    const struct runner runner = runner_of(&reference);
    memcpy(court->reference, reference.kernel.content, sizeof court->reference);
    const bool good =
        (court->task->reference == BHI_REFERENCE_FILES || run_all(&runner, outcome)) &&
        (court->keeper || bhi_stream_find_device(reference.stream, court->device, outcome));
    bhi_reference_close(&reference);
    return good;
}
