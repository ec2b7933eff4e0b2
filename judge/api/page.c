/* A page about a judge's candidates. */
#include <stdlib.h>

#include "base/detail.h"
#include "judge/api/judge.h"
#include "supervisor/context/layout.h"

void bhi_judge_tell(const bh_judge *judge, const struct bhi_candidate *candidates, size_t count,
                    struct bhi_judge_report *out) {
    *out = (struct bhi_judge_report){
        .task = &judge->task,
        .task_path = judge->place,
        .weak = judge->weak,
        .weak_count = judge->weak_count,
        .hidden_seeds = judge->seeds,
        .hidden_count = judge->seed_count,
        .candidates = candidates,
        .count = count,
        .timed = judge->options.timed,
        .device = judge->court.device,
        .orders = judge->court.cuda ? 1 : 2,
        .workers = judge->options.parallel,
    };
    for (size_t i = 0; i < count; i++) {
        const bh_judgement *judgement = &candidates[i].judgement;
        out->correct += judgement->verdict == BH_JUDGE_CORRECT;
        if (judgement->flushed_bytes > out->flushed) {
            out->flushed = judgement->flushed_bytes;
        }
    }
}

static bh_status take_all(const char *const *names, const bh_judgement *judgements, size_t count,
                          struct bhi_candidate *out, bh_detail *detail) {
    const uint8_t *at = (const uint8_t *)judgements;
    for (size_t i = 0; i < count; i++, at += judgements->struct_size) {
        const bh_status status = bhi_layout_take(BHI_OURS(bh_judgement), &out[i].judgement, at,
                                                 "bh_judge_page", "judgements", detail);
        if (status != BH_OK) {
            return status;
        }
        out[i].file.path = names && names[i] ? names[i] : out[i].judgement.name;
    }
    return BH_OK;
}

static bh_status write_page(bh_judge *judge, const struct bhi_candidate *candidates, size_t count,
                            bh_judge_order order, bh_detail *detail) {
    struct bhi_judge_report report;
    struct bhi_complaint complaint;
    bhi_judge_tell(judge, candidates, count, &report);
    report.by_error = order == BH_JUDGE_BY_ERROR;
    const locale_t before = uselocale(judge->c);
    const bool good = bhi_judge_html(&report, judge->html, &complaint);
    (void)uselocale(before);
    return good ? BH_OK
                : BHI_FAIL(detail, "bh_judge_page", BH_REASON_OUTPUT, "options.html",
                           .text = complaint.text);
}

BH_API bh_status bh_judge_page(bh_judge *judge, const char *const *names,
                               const bh_judgement *judgements, size_t count, bh_judge_order order,
                               bh_detail *detail) {
    const char *call = "bh_judge_page";
    if (count && !judgements) {
        return BHI_FAIL(detail, call, BH_REASON_NULL, "judgements");
    }
    if ((unsigned)order > BH_JUDGE_BY_ERROR) {
        return BHI_FAIL(detail, call, BH_REASON_UNKNOWN_VALUE, "order", .value = order,
                        .text = "order");
    }
    bh_status status = bhi_judge_enter(judge, call, detail);
    if (status != BH_OK) {
        return status;
    }
    struct bhi_candidate *candidates = calloc(count + 1, sizeof *candidates);
    if (!candidates) {
        status = BHI_FAIL(detail, call, BH_REASON_MEMORY);
    } else if (!judge->html || !bhi_judge_is_ready(judge)) {
        status = BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "judge",
                          .text = judge->html ? "is not prepared" : "has no html");
    } else if ((status = take_all(names, judgements, count, candidates, detail)) == BH_OK) {
        status = write_page(judge, candidates, count, order, detail);
    }
    free(candidates);
    bhi_judge_leave(judge);
    return status;
}
