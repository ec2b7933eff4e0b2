#include "judge/check/outcome.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/detail.h"
#include "base/format.h"
#include "tool/interrupt.h"
#include "tool/text.h"

bool bhi_judge_outcome_fail(struct bhi_judge_outcome *outcome, bh_status status, const char *format,
                            ...) {
    va_list list;
    outcome->status = status;
    outcome->blame = BH_BLAME_NONE;
    outcome->called = false;
    bhi_judge_outcome_why(outcome, BH_REASON_NONE, BH_SUBJECT_NONE, "");
    va_start(list, format);
    bhi_vformat(outcome->message, sizeof outcome->message, format, list);
    va_end(list);
    return false;
}

void bhi_judge_outcome_why(struct bhi_judge_outcome *outcome, bh_reason reason, bh_subject subject,
                           const char *name) {
    outcome->reason = reason;
    outcome->subject = subject;
    snprintf(outcome->subject_name, sizeof outcome->subject_name, "%s", name);
}

bool bhi_judge_outcome_memory(struct bhi_judge_outcome *outcome) {
    return bhi_judge_outcome_fail(outcome, BH_NO_MEMORY, "out of memory");
}

bool bhi_judge_outcome_refuse(struct bhi_judge_outcome *outcome, bh_status status,
                              const struct bhi_complaint *complaint) {
    return bhi_judge_outcome_fail(outcome, complaint->memory ? BH_NO_MEMORY : status, "%.590s",
                                  complaint->text);
}

bool bhi_judge_outcome_take(struct bhi_judge_outcome *outcome, bh_status status,
                            const bh_detail *detail) {
    const char *why = detail && detail->message[0] ? bhi_text_without_call(detail->message)
                                                   : bh_status_text(status);
    bhi_judge_outcome_fail(outcome, status, "%s", why);
    if (detail) {
        bhi_judge_outcome_why(outcome, detail->reason, detail->subject, detail->subject_name);
    }
    return false;
}

bh_status bhi_judge_outcome_give(const struct bhi_judge_outcome *outcome, const char *place,
                                 bh_detail *detail) {
    return BHI_FAIL(detail, "", outcome->reason, outcome->subject_name, .subject = outcome->subject,
                    .status = outcome->status, .place = place, .said = outcome->message);
}

bool bhi_judge_outcome_is_doubtful(const struct bhi_judge_outcome *outcome) {
    /* Nobody is blamed for these only if a process was killed from outside, or had been stopped. */
    const bool ended = outcome->status == BH_WORKER_SIGNAL || outcome->status == BH_DEADLINE;
    return outcome->blame == BH_BLAME_SUSPECTED || outcome->reason == BH_REASON_COMPILE_DEADLINE ||
           (ended && outcome->blame == BH_BLAME_NONE) ||
           bh_status_classify(outcome->status) == BH_STATUS_CLASS_VICTIM;
}

bool bhi_judge_outcome_is_elsewhere(const struct bhi_judge_outcome *outcome) {
    return bhi_interrupt_signal() || outcome->called || outcome->status == BH_SYSTEM ||
           bh_status_classify(outcome->status) == BH_STATUS_CLASS_ENVIRON;
}
