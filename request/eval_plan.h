/* What computes an expression: a template or, if the expression has reductions, several in order, with
 * buffers of their own between them. A plan does not change, so threads may share it. */
#ifndef BHI_REQUEST_EVAL_PLAN_H
#define BHI_REQUEST_EVAL_PLAN_H

#include "request/eval_pieces.h"

struct bhi_eval_plan;

/* |options| has an expression, and parameters without types. The calls return what those of a template
 * do, and their messages name these. */
bh_status bhi_eval_plan_create(bh_context *context, const bh_template_options *options,
                               struct bhi_eval_plan **out_plan, bh_detail *detail);
void bhi_eval_plan_retain(struct bhi_eval_plan *plan);
void bhi_eval_plan_release(struct bhi_eval_plan *plan);
bh_status bhi_eval_plan_output(struct bhi_eval_plan *plan, const bh_argument *arguments,
                               uint32_t count, const char *name, bh_description *out,
                               bh_detail *detail);
/* Writes the GLSL of all kernels, as the caller's text. */
bh_status bhi_eval_plan_source(struct bhi_eval_plan *plan, const bh_argument *arguments,
                               uint32_t count, char **out_text, bh_detail *detail);

/* Prepares all commands. The first |arrays| arguments have buffers; the last of these is an output. On
 * failure there is nothing to free. */
bh_status bhi_eval_plan_cut(struct bhi_eval_plan *plan, const bh_argument *arguments,
                            uint32_t count, uint32_t arrays, const struct bhi_eval_limits *limits,
                            struct bhi_pieces *out_pieces, bh_detail *detail);

#endif
