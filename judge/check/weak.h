/* Would a kernel that computes nothing be right? Then the task is weak: what it calls CORRECT says
 * little. */
#ifndef BHI_JUDGE_CHECK_WEAK_H
#define BHI_JUDGE_CHECK_WEAK_H

#include <stdbool.h>

#include "judge/check/outcome.h"
#include "judge/check/trial.h"

/* What a kernel could store in place of a result. */
enum bhi_trick {
    BHI_TRICK_ZEROS,
    BHI_TRICK_CONSTANT, /* one value in all elements: halfway from the least to the greatest */
    BHI_TRICK_INPUT,    /* a copy of an input */
    BHI_TRICK_SEED,     /* what is right for another seed */
};

/* One output, at one size: the trick passes with each seed. */
struct bhi_weakness {
    enum bhi_trick trick;
    uint32_t output; /* its index among the task's arrays */
    uint32_t input;  /* of BHI_TRICK_INPUT */
    size_t size;     /* of the task's sizes; one of several, maybe */
    bool everywhere; /* at each size */
};

/* Finds them by what the reference has computed: of each output the first trick that passes. Where the
 * trick gives the very bytes at some sizes only, as a softmax of one element is always 1, that is no
 * weakness. None of a task whose inputs never vary, which is said already (bhi_task_is_storable). May run
 * the reference again (expected.h), and blocks then. Returns false if that fails, or memory ran out. */
bool bhi_weaknesses_find(struct bhi_court *court, struct bhi_weakness out[BHI_TASK_ARRAYS],
                         size_t *out_count, struct bhi_judge_outcome *outcome);

/* Says it in one line. Returns |out|. */
enum { BHI_WEAKNESS_TEXT = 512 };
const char *bhi_weakness_text(const struct bhi_task *task, const struct bhi_weakness *weakness,
                              char out[BHI_WEAKNESS_TEXT]);

#endif
