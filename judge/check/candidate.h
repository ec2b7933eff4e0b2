/* Judges one candidate: a kernel that nobody trusts. */
#ifndef BHI_JUDGE_CHECK_CANDIDATE_H
#define BHI_JUDGE_CHECK_CANDIDATE_H

#include "judge/check/court.h"
#include "judge/check/setup.h"
#include "judge/check/timing.h"
#include "request/kernel_file.h"
#include "tool/content_hash.h"

enum bhi_judgement {
    BHI_JUDGED_CORRECT,
    BHI_JUDGED_WRONG,  /* an output differs from what is expected */
    BHI_JUDGED_STRAY,  /* it wrote outside of its outputs */
    BHI_JUDGED_FORGED, /* the times that its worker claims are false */
    BHI_JUDGED_SLOWER, /* it is right, and slower than was asked for */
    BHI_JUDGED_FAILED, /* it did not run to its end: see |outcome| */
    BHI_JUDGEMENTS
};

struct bhi_candidate {
    const char *path;
    struct bhi_kernel_file file; /* at |path|, or with its code in memory, which is borrowed */
    char name[64];
    bool judged;                       /* its verdict is known */
    bool has_content;                  /* its file could be read */
    uint8_t content[BHI_CONTENT_HASH]; /* hash of what was read */
    enum bhi_judgement judgement;
    struct bhi_judge_outcome outcome; /* of BHI_JUDGED_FAILED; otherwise only the message */
    uint64_t runs;                    /* that ended READY */
    bool nondeterministic;            /* two runs with the same inputs left different bytes */
    const struct bhi_trial *trial;    /* that ended it; NULL: none did */
    uint32_t array;                   /* of WRONG and STRAY */
    struct bhi_difference difference; /* of WRONG */
    struct bhi_timing *timings;       /* by size; NULL: none was measured; owned */
    size_t timing_count;
};

/* Judges the kernel in |file|, which may be out->file; its path and its code are borrowed. Returns
 * false if the machine failed or a signal came: then nothing is known about the kernel, and
 * |outcome| says why. */
bool bhi_candidate_judge(struct bhi_court *court, const struct bhi_kernel_file *file,
                         struct bhi_candidate *out);
/* The same, but runs it once only: out->judged is false if its worker may have ended because of
 * something else than the kernel. */
bool bhi_candidate_try(struct bhi_court *court, const struct bhi_kernel_file *file,
                       struct bhi_candidate *out);
/* Compares what a run left with what is expected of |trial|. If it is wrong, fills in |out|, whose
 * trial becomes |named|, and returns false. */
bool bhi_candidate_check(const struct bhi_task *task, const struct bhi_trial *trial,
                         const struct bhi_trial *named, const struct bhi_launched *launched,
                         struct bhi_candidate *out);
void bhi_candidate_free(struct bhi_candidate *candidate);
/* "CORRECT", "WRONG", "STRAY_WRITE", "TIMING_FORGED", "SLOWER", or the name of the status with
 * which it failed. */
const char *bhi_candidate_verdict(const struct bhi_candidate *candidate);

#endif
