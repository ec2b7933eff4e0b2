#include "judge/check/expected.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "judge/check/reference.h"

/* -- forgetting ------------------------------------------------------------------------------ */

static uint64_t known_bytes(const struct bhi_task *task, const struct bhi_trial *trial) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < task->array_count; i++) {
        bytes += trial->arrays[i].expected ? trial->arrays[i].form.bytes : 0;
    }
    return bytes;
}

static bool hash(const struct bhi_task *task, const struct bhi_trial *trial,
                 uint8_t out[BHI_CONTENT_HASH]) {
    struct bhi_content_hash *all = bhi_content_hash_begin();
    for (size_t i = 0; i < task->array_count && all; i++) {
        const struct bhi_trial_array *array = &trial->arrays[i];
        if (array->expected) {
            bhi_content_hash_add(all, array->expected, array->form.bytes);
        }
    }
    bhi_content_hash_end(all, out);
    return all;
}

bool bhi_expected_forget(struct bhi_court *court, uint32_t times) {
    const struct bhi_task *task = court->task;
    uint64_t most = BHI_TRIALS_LEAST, known = 0;
    for (size_t i = 0; i < court->trials.count; i++) {
        const struct bhi_trial *trial = &court->trials.list[i];
        most = times * trial->bytes > most ? times * trial->bytes : most;
        known += known_bytes(task, trial);
    }
    if (task->reference != BHI_REFERENCE_KERNEL && task->reference != BHI_REFERENCE_EVAL) {
        return true;
    }
    for (size_t i = court->trials.count; i-- > 0 && known > most;) {
        struct bhi_trial *trial = &court->trials.list[i];
        const uint64_t bytes = known_bytes(task, trial);
        if (bytes && !trial->forgotten && !hash(task, trial, trial->hash)) {
            return false;
        }
        for (size_t k = 0; k < task->array_count && bytes; k++) {
            free(trial->arrays[k].expected);
            trial->arrays[k].expected = NULL;
            trial->forgotten = true;
        }
        known -= bytes;
        (void)malloc_trim(0); /* or it stays between what is still known */
    }
    return true;
}

/* -- recalling ------------------------------------------------------------------------------- */

static bool open(struct bhi_court *court, struct bhi_judge_outcome *outcome) {
    struct bhi_reference *again = calloc(1, sizeof *again);
    if (!again) {
        return bhi_judge_outcome_memory(outcome);
    }
    if (!bhi_reference_open(court, again, outcome)) {
        free(again);
        return false;
    }
    court->again = again;
    return true;
}

/* Runs the reference for |out|, whose arrays expect nothing yet. */
static bool compute(struct bhi_court *court, struct bhi_trial *out,
                    struct bhi_judge_outcome *outcome) {
    struct bhi_launched launched;
    uint8_t now[BHI_CONTENT_HASH];
    pthread_mutex_lock(&court->recalling);
    const bool good = (court->again || open(court, outcome)) &&
                      bhi_reference_compute(court->again, out, &launched, outcome);
    if (court->again) {
        bhi_rack_close(&court->again->rack); /* arrays are large */
    }
    pthread_mutex_unlock(&court->recalling);
    if (!good) {
        return false;
    }
    bhi_launched_expect(court->task, &launched, out);
    if (!hash(court->task, out, now)) {
        return bhi_judge_outcome_memory(outcome);
    }
    return !memcmp(now, out->hash, sizeof now) ||
           bhi_judge_outcome_fail(outcome, BH_INVALID_ARGUMENT,
                                  "the reference no longer computes the same");
}

bool bhi_expected_recall(struct bhi_court *court, const struct bhi_trial *trial,
                         struct bhi_recalled *out, struct bhi_judge_outcome *outcome) {
    const size_t size = court->task->array_count * sizeof *trial->arrays;
    *out = (struct bhi_recalled){.trial = *trial};
    if (!trial->forgotten) {
        return true;
    }
    out->made = true;
    out->trial.arrays = malloc(size);
    bool good = out->trial.arrays || bhi_judge_outcome_memory(outcome);
    if (good) {
        memcpy(out->trial.arrays, trial->arrays, size);
        good = compute(court, &out->trial, outcome);
    }
    if (!good) {
        outcome->called = true;
        bhi_recalled_free(court->task, out);
    }
    return good;
}

void bhi_recalled_free(const struct bhi_task *task, struct bhi_recalled *recalled) {
    for (size_t i = 0; recalled->made && recalled->trial.arrays && i < task->array_count; i++) {
        free(recalled->trial.arrays[i].expected);
    }
    free(recalled->made ? recalled->trial.arrays : NULL);
    *recalled = (struct bhi_recalled){.made = false};
}

void bhi_expected_close(struct bhi_court *court) {
    if (court->again) {
        bhi_reference_close(court->again);
    }
    free(court->again);
    court->again = NULL;
}
