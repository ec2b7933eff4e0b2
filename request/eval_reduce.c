/* The kernels of a reduction. It is one kernel if it has few elements for each result. Otherwise its
 * results are left in parts, and the parts reduced, until there is one of each:
 *
 *     mean(x*y), 10^6 elements:   4096 parts of x*y  ->  16 parts  ->  1  ->  / 10^6
 *
 * argmax is a max, and then the least index of what is equal to it, or a NaN.
 */
#include "request/eval_reduce.h"

#include <stdio.h>
#include <string.h>

#include "base/format.h"

enum {
    DEPTH = 256, /* the most elements that an invocation reduces */
    TILE = 256,  /* parts beside each other */
};

/* How many parts each result is left in; 1: it is one kernel. */
static uint32_t choose_parts(uint64_t length) {
    const uint64_t need = (length + DEPTH - 1) / DEPTH;
    uint32_t parts = 1;
    if (need >= TILE) {
        return (uint32_t)((need + TILE - 1) / TILE * TILE);
    }
    while (parts < need) {
        parts *= 2;
    }
    return parts;
}

/* Whether the last axis that is more than one element stays. Then parts come first, so that invocations
 * beside each other still read elements beside each other. */
static bool keeps_last(const struct bhi_eval_kernel *kernel) {
    uint32_t k = kernel->joined.rank;
    while (k > 0 && kernel->joined.size[k - 1] == 1) {
        k--;
    }
    return k > 0 && kernel->reduced.kept.size[k - 1] != 1;
}

/* By what parts are reduced; of what is looked for, the least index. */
static const char *part_function(enum bhi_reducer reducer) {
    return bhi_reducer_name(reducer == BHI_REDUCE_MEAN   ? BHI_REDUCE_SUM
                            : bhi_reducer_finds(reducer) ? BHI_REDUCE_MIN
                                                         : reducer);
}

/* Reduces the last value, which is the use's to drop, along |axes| to |out|. */
static bh_status reduce_parts(struct bhi_eval_use *use, enum bhi_reducer reducer, const char *axes,
                              struct bhi_eval_value *parts, struct bhi_eval_value *out) {
    const char *function = part_function(reducer);
    for (;;) {
        struct bhi_pen text = {0};
        struct bhi_eval_kernel kernel;
        struct bhi_eval_value next = {.name = "p", .dtype = BH_DTYPE_NONE};
        bhi_pen_put(&text, "q = %s(p, axis=%s)", function, axes);
        bh_status status = bhi_eval_look_at(use, &text, "q", &kernel);
        const uint32_t more = status == BH_OK ? choose_parts(kernel.reduced.length) : 1;
        if (status != BH_OK || more == 1) {
            return status == BH_OK ? bhi_eval_put(use, &kernel, out) : status;
        }
        const bool in_front = keeps_last(&kernel);
        bhi_eval_kernel_fini(&kernel);
        text = (struct bhi_pen){0};
        bhi_pen_put(&text, "q = %s(p, axis=%s, parts=%s%u)", function, axes, in_front ? "-" : "",
                    more);
        status = bhi_eval_look_at(use, &text, "q", &kernel);
        status = status == BH_OK ? bhi_eval_put(use, &kernel, &next) : status;
        if (status != BH_OK) {
            return status;
        }
        *parts = next;
        axes = in_front ? "0" : "-1";
    }
}

/* Makes of a sum what it is asked for: a mean, or a half. */
static bh_status finish(struct bhi_eval_use *use, uint64_t length, bh_dtype dtype, bool mean,
                        struct bhi_eval_value *out) {
    struct bhi_pen text = {0};
    struct bhi_eval_kernel kernel;
    char value[64] = "p";
    if (mean) {
        bhi_format(value, sizeof value, "p / %llu", (unsigned long long)length);
    }
    bhi_pen_put(&text, dtype == BH_DTYPE_F16 ? "q = f16(%s)" : "q = %s", value);
    const bh_status status = bhi_eval_look_at(use, &text, "q", &kernel);
    return status == BH_OK ? bhi_eval_put(use, &kernel, out) : status;
}

/* Leaves in |p| what the pieces of an operand make of it, and writes the axes along which that is to be
 * reduced further. */
static bh_status reduce_pieces(struct bhi_eval_use *use, const struct bhi_kernel_stage *stage,
                               struct bhi_kernel_form *parted, const struct bhi_piece_cut *cut,
                               struct bhi_eval_value *p, struct bhi_pen *axes) {
    struct bhi_eval_kernel kernel;
    uint32_t parts = choose_parts(cut->length);
    if (cut->splits || parts > 1) { /* each piece leaves whole tiles, which are well aligned */
        parts = (parts + TILE - 1) / TILE * TILE;
    }
    bhi_pen_put(axes, "(");
    p->shape = (struct bhi_shape){.count = 1};
    for (uint32_t k = 0; k < cut->rank; k++) {
        p->shape.size[p->shape.rank++] = bhi_piece_cut_steps(cut, k);
        if (cut->reduced[k]) {
            bhi_pen_put(axes, "%u,", k);
        }
    }
    p->shape.size[p->shape.rank++] = parts;
    bhi_pen_put(axes, "-1)");
    for (uint32_t k = 0; k < p->shape.rank; k++) {
        p->shape.count *= p->shape.size[k];
    }
    parted->parts = parts;
    const bh_status status = bhi_eval_look_at_stage(use, stage, parted, &kernel);
    return status == BH_OK ? bhi_eval_put_cut(use, &kernel, cut, parts, p) : status;
}

/* Computes |stage| as |form| says to |out|, whatever its reduction is by. */
bh_status bhi_eval_reduce(struct bhi_eval_use *use, const struct bhi_kernel_stage *stage,
                          const struct bhi_kernel_form *form, enum bhi_reducer reducer,
                          struct bhi_eval_value *out) {
    const uint32_t before = use->count;
    struct bhi_eval_kernel kernel;
    bh_status status = bhi_eval_look_at_stage(use, stage, form, &kernel);
    if (status != BH_OK) {
        return status;
    }
    const bh_dtype dtype = kernel.dtype;
    const struct bhi_shape shape = kernel.reduced.result;
    const uint64_t length = kernel.reduced.length;
    const uint32_t parts = choose_parts(length);
    const bool in_front = keeps_last(&kernel);
    struct bhi_piece_cut cut = {.pieces = 1};
    if (use->pieces) {
        cut.rank = kernel.joined.rank;
        memcpy(cut.shape, kernel.joined.size, sizeof cut.shape);
        memcpy(cut.reduced, kernel.reduced.axes, sizeof cut.reduced);
        status = bhi_eval_measure(use, &kernel, &cut);
    }
    if (status == BH_OK && cut.pieces == 1 && (parts == 1 || !use->pieces)) {
        return bhi_eval_put(use, &kernel, out);
    }
    bhi_eval_kernel_fini(&kernel);
    struct bhi_kernel_form parted = *form;
    struct bhi_pen axes = {0};
    struct bhi_eval_value *p = bhi_eval_add(use, "p");
    parted.keepdims = false;
    if (status == BH_OK && cut.pieces > 1) {
        status = reduce_pieces(use, stage, &parted, &cut, p, &axes);
    } else if (status == BH_OK) {
        parted.parts = in_front ? -(int64_t)parts : (int64_t)parts;
        bhi_pen_put(&axes, in_front ? "0" : "-1");
        status = bhi_eval_look_at_stage(use, stage, &parted, &kernel);
        status = status == BH_OK ? bhi_eval_put(use, &kernel, p) : status;
    }
    if (status == BH_OK && axes.failed) {
        status = bhi_eval_fail_memory(use->detail);
    }
    const bool mean = reducer == BHI_REDUCE_MEAN, finishes = mean || p->dtype != dtype;
    struct bhi_eval_value end = {.name = "p", .dtype = BH_DTYPE_NONE};
    if (status == BH_OK) {
        status = reduce_parts(use, reducer, axes.text, p, finishes ? &end : out);
    }
    bhi_pen_fini(&axes);
    if (status == BH_OK && finishes) {
        *p = end;
        status = finish(use, length, dtype, mean, out);
    }
    use->count = before;
    out->shape = shape; /* with the axes that were asked for */
    return status;
}

/* First what is looked for, then where it is. */
bh_status bhi_eval_find_index(struct bhi_eval_use *use, const struct bhi_kernel_stage *stage,
                              bool least, bool keepdims, struct bhi_eval_value *out) {
    const uint32_t before = use->count;
    struct bhi_kernel_form form = {
        .function = least ? "min" : "max", .arguments = "", .keepdims = true};
    char arguments[2 * BHI_NAME_BYTES + 8];
    struct bhi_eval_value found = {.dtype = BH_DTYPE_NONE},
                          first = {.number = true, .dtype = BH_DTYPE_I64};
    snprintf(found.name, sizeof found.name, "%c%d", stage->result[0], BHI_EXPRESSION_REDUCTIONS);
    snprintf(first.name, sizeof first.name, "%c%d", stage->result[0],
             BHI_EXPRESSION_REDUCTIONS + 1);
    /* "any" takes what min and max refuse, so that a complaint names what is in the text. */
    struct bhi_kernel_form any = {.function = "any", .arguments = ""};
    struct bhi_complaint complaint;
    struct bhi_eval_kernel kernel;
    struct bhi_reduced reduced;
    bh_status status = bhi_eval_look_at_stage(use, stage, &any, &kernel);
    if (status != BH_OK) {
        return status;
    }
    if (!bhi_reduction_shape(&use->plan->plan.expression, stage->reduction, &kernel.joined,
                             &reduced, &complaint)) {
        status = bhi_eval_refuse(use->detail, &complaint);
    }
    bhi_eval_kernel_fini(&kernel);
    if (status != BH_OK) {
        return status;
    }
    status = bhi_eval_reduce(use, stage, &form, least ? BHI_REDUCE_MIN : BHI_REDUCE_MAX, &found);
    snprintf(arguments, sizeof arguments, ", %s, %s", found.name, first.name);
    use->values[use->count++] = found;
    use->values[use->count++] = first;
    form = (struct bhi_kernel_form){.arguments = arguments, .keepdims = keepdims};
    if (status == BH_OK) {
        status = bhi_eval_reduce(use, stage, &form, BHI_REDUCE_ARGMIN, out);
    }
    use->count = before;
    return status;
}
