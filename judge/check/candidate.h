/* Judges one candidate: a kernel that nobody trusts. */
#ifndef BHI_JUDGE_CHECK_CANDIDATE_H
#define BHI_JUDGE_CHECK_CANDIDATE_H

#include <bulkhead/judge.h>

#include "judge/check/court.h"
#include "judge/check/setup.h"
#include "request/kernel_file.h"
#include "tool/content_hash.h"

struct bhi_candidate {
    const char *path;
    struct bhi_kernel_file file; /* at |path|, or with its code in memory, which is borrowed */
    char name[64];
    bool judged;                       /* its verdict is known */
    bool has_content;                  /* its file could be read */
    uint8_t content[BHI_CONTENT_HASH]; /* hash of what was read */
    bh_judge_verdict verdict;
    struct bhi_judge_outcome outcome; /* of BH_JUDGE_FAILED; otherwise only the message */
    uint64_t runs;                    /* that ended READY */
    bool nondeterministic;            /* two runs with the same inputs left different bytes */
    const struct bhi_trial *trial;    /* that ended it; NULL: none did */
    uint32_t array;                   /* of WRONG and STRAY */
    struct bhi_difference difference; /* of WRONG */
    bh_judge_timing *timings;         /* by size; NULL: none was measured; owned */
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

#endif
