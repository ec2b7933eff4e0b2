#include "core/past.h"
#include "core/submission.h"

bool bhi_past_clean(const struct bhi_past *past, const struct bhi_submission *submission) {
    return !past->code || (!past->mixed && past->code == submission->code);
}

bool bhi_past_suits(const struct bhi_past *past, const struct bhi_submission *submission,
                    enum bhi_apart apart, bool idle) {
    /* What the worker already has may have to be kept apart from all or from other code. */
    if (!idle && (apart == BHI_APART_ALL || past->kept == BHI_APART_ALL)) {
        return false;
    }
    if (!idle && past->kept == BHI_APART_CODE && submission->code &&
        !bhi_past_clean(past, submission)) {
        return false;
    }
    switch (apart) {
    case BHI_APART_NOT:
        break;
    case BHI_APART_CODE: /* copies and fills run no code of anybody */
        return !submission->code || bhi_past_clean(past, submission);
    case BHI_APART_ALL:
        return !past->code || (bhi_past_clean(past, submission) && !past->used);
    }
    return true;
}

void bhi_past_compiles(struct bhi_past *past, uint64_t code) {
    past->mixed |= past->code && past->code != code;
    if (!past->code) {
        past->code = code;
    }
}

void bhi_past_inherit(struct bhi_past *past, uint64_t code) {
    past->code = code;
    past->mixed = true;
}

void bhi_past_add(struct bhi_past *past, const struct bhi_submission *submission,
                  enum bhi_apart apart, bool idle) {
    if (idle || apart > past->kept) {
        past->kept = apart;
    }
    if (submission->code) {
        bhi_past_compiles(past, submission->code);
        past->used |= submission->runs_kernel;
    }
}

bh_blame bhi_past_blame(const struct bhi_past *past, const struct bhi_submission *submission,
                        bh_status status) {
    if (status == BH_OK || bh_status_classify(status) == BH_STATUS_CLASS_VICTIM) {
        return BH_BLAME_NONE;
    }
    return bhi_past_clean(past, submission) ? BH_BLAME_CERTAIN : BH_BLAME_SUSPECTED;
}

void bhi_blame_lower(bh_blame *blame) {
    if (*blame == BH_BLAME_CERTAIN) {
        *blame = BH_BLAME_SUSPECTED;
    }
}
