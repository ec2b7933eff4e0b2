#include "judge/time/slower.h"

#include <stdio.h>

const struct bhi_trial *bhi_timed_trial(const struct bhi_court *court, size_t size) {
    for (size_t i = 0; i < court->trials.count && !court->task->sizes[size].check_only; i++) {
        if (court->trials.list[i].size == size) {
            return &court->trials.list[i];
        }
    }
    return NULL;
}

void bhi_slower_judge(const struct bhi_court *court, const struct bhi_timing_options *options,
                      const bh_judge_timing *timing, bh_judgement *out) {
    if (out->verdict != BH_JUDGE_CORRECT || options->slower <= 0 ||
        timing->low <= options->slower) {
        return;
    }
    bhi_judgement_end(court->task, bhi_timed_trial(court, timing->size_index), BH_JUDGE_SLOWER,
                      out);
    snprintf(out->message, sizeof out->message,
             "it takes %.3f times as long as the reference, at least %.3f (%s)", timing->ratio,
             timing->low, out->size_text);
}

static bool is_of(const bh_judge_timing *timing, const struct bhi_timing_options *options) {
    const bool same_caches = !timing->device || timing->cold == !options->warm;
    const bool same_processors =
        options->all_processors ? !timing->one_processor : !timing->spreads;
    return timing->ratio > 0 && same_caches && same_processors &&
           (!options->guard || timing->guard_ratio > 0);
}

bool bhi_slower_judge_known(const struct bhi_court *court, const struct bhi_timing_options *options,
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
        bhi_slower_judge(court, options, &out->timings[i], out);
    }
    return !missing || out->verdict == BH_JUDGE_SLOWER;
}
