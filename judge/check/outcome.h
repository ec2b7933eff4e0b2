/* How a step for a kernel ended. */
#ifndef BHI_JUDGE_CHECK_OUTCOME_H
#define BHI_JUDGE_CHECK_OUTCOME_H

#include "formats/complaint.h"
#include <bulkhead/bulkhead.h>

struct bhi_judge_outcome {
    bh_status status; /* BH_OK: well */
    bh_reason reason;
    bh_subject subject;
    char subject_name[64];
    bh_blame blame; /* how certain it is that the kernel is the cause */
    char message[600];
    bool called; /* it is the program's own function that failed, or the reference: nothing is known
                    of the kernel */
};

/* Fills in a failure. Returns false. */
bool bhi_judge_outcome_fail(struct bhi_judge_outcome *outcome, bh_status status, const char *format,
                            ...) __attribute__((format(printf, 3, 4)));
bool bhi_judge_outcome_memory(struct bhi_judge_outcome *outcome);
/* The same with the complaint, which is about the kernel unless memory has run out. */
bool bhi_judge_outcome_refuse(struct bhi_judge_outcome *outcome, bh_status status,
                              const struct bhi_complaint *complaint);
/* Sets why exactly; |name| is that of the subject, or "". */
void bhi_judge_outcome_why(struct bhi_judge_outcome *outcome, bh_reason reason, bh_subject subject,
                           const char *name);
/* Takes the failure of a call of the library. Returns false. */
bool bhi_judge_outcome_take(struct bhi_judge_outcome *outcome, bh_status status,
                            const bh_detail *detail);
/* The way back: fails a call as the step for a kernel did. |place| may be NULL. */
bh_status bhi_judge_outcome_give(const struct bhi_judge_outcome *outcome, const char *place,
                                 bh_detail *detail);
/* May another process than the kernel's worker be the cause? Then the kernel is tried again. */
bool bhi_judge_outcome_is_doubtful(const struct bhi_judge_outcome *outcome);
/* Is it the machine that failed, or a signal that came, and not the kernel? */
bool bhi_judge_outcome_is_elsewhere(const struct bhi_judge_outcome *outcome);

#endif
