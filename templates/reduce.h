/* Reductions: the shape of what one makes, and the GLSL of it.
 *
 * A kernel of a reduction has an invocation for each result, or for each part of one, which loops over
 * its elements. Part p of P has every P'th element of a stretch, or of a tile: invocations beside each
 * other read elements beside each other. The order is the same on every device. Float sums are added up
 * in blocks of 16. Plans (split.h) leave no more than 256 elements to an invocation, and then add up what it
 * left, so the sum is pairwise but for these short runs.
 */
#ifndef BHI_TEMPLATES_REDUCE_H
#define BHI_TEMPLATES_REDUCE_H

#include "templates/functions.h"
#include "templates/shape.h"
#include "templates/values.h"

/* What a reduction makes of an operand's shape. */
struct bhi_reduced {
    struct bhi_shape kept; /* the operand's, with 1 for each axis that is reduced; its elements are
                                the results */
    struct bhi_shape result; /* with these axes or without them, and with that of the parts */
    uint64_t length;         /* elements of the operand for each result */
    bool axes[BH_MAX_RANK];  /* of the operand: is it reduced? */
};

/* How an invocation of a reduction walks, as push constants. */
enum { BHI_WALK_LENGTH, BHI_WALK_PARTS, BHI_WALK_WIDTH, BHI_WALK_SPAN, BHI_WALK_WORDS };

#define BHI_MAX_REDUCED (UINT64_C(1) << 40) /* elements of an operand */

/* The only reduction of a template's expression, which is its last operation; NULL: it has none. */
const struct bhi_reduction *bhi_expression_reduction(const struct bhi_expression *e);
bool bhi_reduction_shape(const struct bhi_expression *e, const struct bhi_reduction *reduction,
                         const struct bhi_shape *operand, struct bhi_reduced *out,
                         struct bhi_complaint *complaint);
void bhi_reduction_walk(const struct bhi_reduction *reduction, uint64_t length,
                        uint32_t *out_words);
/* Emits one element's value, of the accumulator's type. */
bool bhi_emit_reduction(struct bhi_emitter *emitter, const struct bhi_reduction *reduction,
                        const struct bhi_value *arguments, struct bhi_value *out_value);

/* Float sums. */
bool bhi_accumulator_blocks(const struct bhi_accumulator *a);
/* Declares a variable with the result of no elements. */
void bhi_accumulator_declare(const struct bhi_accumulator *a, struct bhi_pen *pen,
                             const char *name);
/* Adds a value, or what another variable has gathered. */
void bhi_accumulator_add(const struct bhi_accumulator *a, struct bhi_pen *pen, const char *name,
                         const char *value);
/* Declares the result, of |a->result|. */
void bhi_accumulator_finish(const struct bhi_accumulator *a, struct bhi_pen *pen, const char *name,
                            const char *result);

#endif
