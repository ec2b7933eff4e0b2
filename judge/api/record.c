/* What a judge keeps on disk: judgements in bh_judge_options.state; and whether its html can be
 * written. */
#include <stdlib.h>
#include <string.h>

#include "base/detail.h"
#include "judge/api/judge.h"

static bh_status fail(bh_detail *detail, enum bhi_judge_journal_result result,
                      const struct bhi_complaint *complaint) {
    return BHI_FAIL(detail, "", BH_REASON_OUTPUT, "options.state",
                    .status = complaint->memory                 ? BH_NO_MEMORY
                              : result == BHI_JOURNAL_BAD_INPUT ? BH_INVALID_ARGUMENT
                                                                : BH_SYSTEM,
                    .text = complaint->text);
}

bh_status bhi_judge_open_record(bh_judge *judge, const bh_judge_options *options,
                                bh_detail *detail) {
    struct bhi_complaint complaint;
    if (!options->state) {
        return BH_OK;
    }
    if (!(judge->state = strdup(options->state))) {
        return BHI_FAIL(detail, "bh_judge_create", BH_REASON_MEMORY);
    }
    enum bhi_judge_journal_result result =
        bhi_judge_journal_open(&judge->journal, judge->state, options->resume, &complaint);
    if (result == BHI_JOURNAL_OK && judge->journal.header) {
        free(judge->seeds);
        judge->seeds = NULL;
        result =
            bhi_judge_journal_seeds(&judge->journal, &judge->seeds, &judge->seed_count, &complaint)
                ? BHI_JOURNAL_OK
                : BHI_JOURNAL_ENVIRON;
    }
    return result == BHI_JOURNAL_OK ? BH_OK : fail(detail, result, &complaint);
}

bh_status bhi_judge_begin_record(bh_judge *judge, bh_detail *detail) {
    struct bhi_complaint complaint;
    const enum bhi_judge_journal_result result =
        judge->state ? bhi_judge_journal_begin(&judge->journal, &judge->court, judge->seeds,
                                               judge->seed_count, &complaint)
                     : BHI_JOURNAL_OK;
    return result == BHI_JOURNAL_OK ? BH_OK : fail(detail, result, &complaint);
}

bool bhi_judge_find_record(bh_judge *judge, struct bhi_candidate *candidate) {
    if (judge->state) {
        bhi_judge_journal_find(&judge->journal, candidate);
    }
    return candidate->judged;
}

bh_status bhi_judge_record(bh_judge *judge, const struct bhi_candidate *candidate,
                           bh_detail *detail) {
    bh_status status = BH_OK;
    if (!judge->state) {
        return BH_OK;
    }
    pthread_mutex_lock(&judge->recording);
    if (!bhi_judge_journal_note(&judge->journal, candidate)) {
        status = fail(detail, BHI_JOURNAL_ENVIRON, &judge->journal.complaint);
    }
    pthread_mutex_unlock(&judge->recording);
    return status;
}

void bhi_judge_close_record(bh_judge *judge) {
    if (judge->state) {
        bhi_judge_journal_close(&judge->journal);
    }
    free(judge->state);
}

bh_status bhi_judge_open_page(bh_judge *judge, const bh_judge_options *options, bh_detail *detail) {
    struct bhi_complaint complaint;
    if (!options->html) {
        return BH_OK;
    }
    if (!bhi_page_check(options->html, &complaint)) {
        return BHI_FAIL(detail, "bh_judge_create", BH_REASON_OUTPUT, "options.html",
                        .status = BH_INVALID_ARGUMENT, .place = options->html,
                        .text = complaint.text);
    }
    return (judge->html = strdup(options->html))
               ? BH_OK
               : BHI_FAIL(detail, "bh_judge_create", BH_REASON_MEMORY);
}
