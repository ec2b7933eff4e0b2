/* A reference that is an expression: `bulkhead eval` on the inputs of a trial. */
#ifndef BHI_JUDGE_CHECK_EXPRESSION_H
#define BHI_JUDGE_CHECK_EXPRESSION_H

#include "judge/check/launch.h"

/* The template of the last run, which the next run uses if the text is the same. {0} is none. */
struct bhi_reference_template {
    bh_template *template_; /* owned */
    char *text;             /* owned */
};

/* Computes the task's expression. It may use the inputs, and the sizes and push constants as
 * numbers that are written in it. */
bool bhi_reference_eval(struct bhi_court *court, bh_stream *stream, const struct bhi_trial *trial,
                        struct bhi_reference_template *cache, struct bhi_launched *out,
                        struct bhi_judge_outcome *outcome);
void bhi_reference_template_free(struct bhi_reference_template *cache);

#endif
