#include "judge/check/expected.h"

#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "judge/check/reference.h"

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
    if (!bhi_trial_hash(court->task, out, now)) {
        return bhi_judge_outcome_memory(outcome);
    }
    return !memcmp(now, out->hash, sizeof now) ||
           bhi_judge_outcome_fail(outcome, BH_INVALID_ARGUMENT, "it no longer computes the same");
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
        const struct bhi_judge_outcome inner = *outcome;
        bhi_format(outcome->message, sizeof outcome->message, "the reference, run again: %.550s",
                   inner.message);
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
