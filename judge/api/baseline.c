/* The baseline: a kernel of the program's choice that times are compared with. Its results need nobody's
 * trust: it is judged like a candidate first. Its times are those that the program wants. */
#include <stdlib.h>
#include <string.h>

#include "base/detail.h"
#include "judge/api/judge.h"

void bhi_baseline_free(bh_judge *judge) {
    struct bhi_kernel_file *file = &judge->baseline.file;
    free((void *)file->path);
    free((void *)file->name);
    free((void *)file->code);
    *file = (struct bhi_kernel_file){0};
}

bool bhi_baseline_keep(bh_judge *judge, const struct bhi_kernel_file *file) {
    struct bhi_kernel_file *out = &judge->baseline.file;
    *out = *file;
    out->path = strdup(file->path);
    out->name = file->name ? strdup(file->name) : NULL;
    judge->court.baseline = &judge->baseline;
    return out->path && !file->name == !out->name;
}

bh_status bhi_baseline_check(bh_judge *judge, bh_detail *detail) {
    struct bhi_judge_outcome outcome = {.status = BH_OK};
    const bh_judgement *of = &judge->baseline.judgement;
    if (!judge->court.baseline) {
        return BH_OK;
    }
    if (!bhi_candidate_judge(&judge->court, &judge->baseline, &outcome)) {
        return bhi_judge_outcome_give(&outcome, "the baseline", detail);
    }
    if (of->verdict == BH_JUDGE_CORRECT) {
        return BH_OK;
    }
    BHI_FAIL(
        detail, "", BH_REASON_BASELINE, judge->baseline.file.path,
        .text = BHI_SAY("%s: %.350s", bh_judge_verdict_name(of->verdict, of->status), of->message));
    if (detail) {
        detail->cause = of->status;
    }
    return BH_INVALID_ARGUMENT;
}
