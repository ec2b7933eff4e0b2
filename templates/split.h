/* Splits an expression into stages, each of which one template can compute: a reduction is a stage, and so is
 * what is left for an output. The result of a reduction has a name of its own in the stages behind it.
 *
 * The text of a stage is the expression's, in which what the stage does not need is blank and each
 * reduction before it is its result's name. So complaints about it have the expression's lines and columns.
 */
#ifndef BHI_TEMPLATES_SPLIT_H
#define BHI_TEMPLATES_SPLIT_H

#include "templates/expression.h"
#include "templates/pen.h"

enum {
    BHI_KERNEL_STAGE_MORE = 1024
}; /* how many bytes a kernel's text may be longer than the expression */

struct bhi_kernel_stage {
    const struct bhi_reduction *reduction; /* NULL: elementwise */
    char *text;                            /* owned */
    bool open;                             /* a '(' has no ')' yet */
    char target[BHI_NAME_BYTES];           /* what its text assigns */
    char result[BHI_NAME_BYTES];           /* its name in later stages; "": none */
    char output[BHI_NAME_BYTES];           /* the output that it computes; "": none */
};

struct bhi_split {
    struct bhi_expression expression; /* owned */
    struct bhi_kernel_stage *stages;  /* owned; in order */
    uint32_t count;
};

/* Plans what computes |outputs|. Takes |expression|, whatever the result. */
bool bhi_split_make(struct bhi_expression *expression, const char *const *outputs, uint32_t count,
                    struct bhi_split *out_plan, struct bhi_complaint *complaint);
void bhi_split_fini(struct bhi_split *plan);

/* How a kernel of a stage differs from what the expression says. */
struct bhi_kernel_form {
    const char *function;  /* in place of the reduction's; NULL: that one */
    const char *arguments; /* further ones, such as ", m, f"; or "" */
    bool keepdims;
    int64_t parts; /* 0: none; below 0: in front */
};

/* Writes the expression of a kernel of |stage|. */
void bhi_kernel_stage_write(const struct bhi_split *plan, const struct bhi_kernel_stage *stage,
                            const struct bhi_kernel_form *form, struct bhi_pen *pen);

#endif
