/* A reference that is an expression: `bulkhead eval` on the inputs of a trial. */
#ifndef BHI_JUDGE_CHECK_EXPRESSION_H
#define BHI_JUDGE_CHECK_EXPRESSION_H

#include "judge/check/launch.h"

/* The template of the last run, which the next run uses if the text is the same. {0} is none. */
struct bhi_reference_template {
    bh_template *template_; /* owned */
    char *text;             /* owned */
};

struct bhi_evaluation;

/* Makes what one computation of the task's expression needs: buffers, and the command. The
 * expression may use the inputs, and the sizes and push constants as numbers that are written in
 * it. |near| and |inputs| are as of bhi_setup_make. |cache| is borrowed. */
bool bhi_evaluation_make(struct bhi_court *court, bh_stream *near, const struct bhi_trial *trial,
                         const struct bhi_inputs *inputs, struct bhi_reference_template *cache,
                         struct bhi_evaluation **out_evaluation, struct bhi_judge_outcome *outcome);
/* The dispatch, valid as long as the evaluation. */
const bh_command *bhi_evaluation_command(const struct bhi_evaluation *evaluation);
/* The buffer of array |index|, which begins where the array does. */
bh_buffer *bhi_evaluation_buffer(const struct bhi_evaluation *evaluation, uint32_t index);
/* Takes the outputs, after the run. After a failure *out holds nothing. */
bool bhi_evaluation_take(const struct bhi_evaluation *evaluation, struct bhi_launched *out,
                         struct bhi_judge_outcome *outcome);
void bhi_evaluation_free(struct bhi_evaluation *evaluation);

/* All of that: computes the expression once. */
bool bhi_reference_eval(struct bhi_court *court, bh_stream *stream, const struct bhi_trial *trial,
                        struct bhi_reference_template *cache, struct bhi_launched *out,
                        struct bhi_judge_outcome *outcome);
void bhi_reference_template_free(struct bhi_reference_template *cache);

#endif
