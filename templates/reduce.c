#include "templates/reduce.h"

#include <stdio.h>
#include <string.h>

#include "templates/lexer.h"
#include "templates/operators.h"

const struct bhi_reduction *bhi_expression_reduction(const struct bhi_expression *e) {
    return e->reduction_count ? &e->reductions[0] : NULL;
}

/* -- shapes ------------------------------------------------------------------------------------- */

static bool find_axes(const struct bhi_expression *e, const struct bhi_reduction *r,
                      const struct bhi_shape *operand, bool *out_reduced,
                      struct bhi_complaint *complaint) {
    const char *at = e->nodes[r->node].at, *name = bhi_functions[r->function].name;
    const int32_t rank = (int32_t)operand->rank;
    char shape[128];
    for (int32_t k = 0; k < rank; k++) {
        out_reduced[k] = r->all;
    }
    for (uint32_t i = 0; i < r->axis_count; i++) {
        const int32_t axis = r->axes[i] < 0 ? r->axes[i] + rank : r->axes[i];
        if (axis < 0 || axis >= rank) {
            return bhi_refuse_at(e->source, at, complaint, "%s: there is no axis %d of %s", name,
                                 r->axes[i], bhi_shape_text(operand, shape, sizeof shape));
        }
        if (out_reduced[axis]) {
            return bhi_refuse_at(e->source, at, complaint, "%s: axis %d of %s is given twice", name,
                                 r->axes[i], bhi_shape_text(operand, shape, sizeof shape));
        }
        out_reduced[axis] = true;
    }
    if (bhi_reducer_finds(bhi_function_reducer(r->function)) && !r->all && r->axis_count != 1) {
        return bhi_refuse_at(e->source, at, complaint, "%s takes one axis, or all", name);
    }
    return true;
}

static void append(struct bhi_shape *shape, uint64_t size) {
    shape->size[shape->rank++] = size;
    shape->count *= size;
}

bool bhi_reduction_shape(const struct bhi_expression *e, const struct bhi_reduction *r,
                         const struct bhi_shape *operand, struct bhi_reduced *out,
                         struct bhi_complaint *complaint) {
    char shape[128];
    const char *at = e->nodes[r->node].at, *name = bhi_functions[r->function].name;
    *out = (struct bhi_reduced){.kept.count = 1, .result.count = 1, .length = 1};
    if (!find_axes(e, r, operand, out->axes, complaint)) {
        return false;
    }
    if (operand->count > BHI_MAX_REDUCED) {
        return bhi_refuse_at(e->source, at, complaint, "%s of %s: more than 2^40 elements", name,
                             bhi_shape_text(operand, shape, sizeof shape));
    }
    if (r->parts && operand->rank == BH_MAX_RANK) {
        return bhi_refuse_at(e->source, at, complaint, "%s: there is no axis left for its parts",
                             name);
    }
    if (r->parts && r->in_front) {
        append(&out->result, r->parts);
    }
    for (uint32_t k = 0; k < operand->rank; k++) {
        append(&out->kept, out->axes[k] ? 1 : operand->size[k]);
        out->length *= out->axes[k] ? operand->size[k] : 1;
        if (!out->axes[k] || r->keepdims) {
            append(&out->result, out->kept.size[k]);
        }
    }
    if (r->parts && !r->in_front) {
        append(&out->result, r->parts);
    }
    if (!out->length && bhi_reducer_needs(bhi_function_reducer(r->function))) {
        return bhi_refuse_at(e->source, at, complaint,
                             "%s of %s: there is no %s of no elements along the axes that are "
                             "reduced",
                             name, bhi_shape_text(operand, shape, sizeof shape), name);
    }
    return true;
}

void bhi_reduction_walk(const struct bhi_reduction *r, uint64_t length, uint32_t *out_words) {
    const uint32_t parts = r->parts ? r->parts : 1;
    uint32_t width = 256; /* of the elements that a tile's invocations read at once */
    while (parts % width) {
        width /= 2;
    }
    const uint64_t depth = (length + parts - 1) / parts, span = depth * width;
    out_words[BHI_WALK_LENGTH] = (uint32_t)length;
    out_words[BHI_WALK_PARTS] = parts;
    out_words[BHI_WALK_WIDTH] = width;
    out_words[BHI_WALK_SPAN] = span > UINT32_MAX ? UINT32_MAX : (uint32_t)span;
}

/* -- one element ------------------------------------------------------------------------------ */

/* The type in which NumPy adds up. */
static bh_dtype sum_type(bh_dtype dtype) {
    if (dtype == BH_DTYPE_F16) {
        return BH_DTYPE_F32;
    }
    return bhi_dtype_is_float(dtype)                              ? dtype
           : dtype == BH_DTYPE_BOOL || bhi_dtype_is_signed(dtype) ? BH_DTYPE_I64
                                                                  : BH_DTYPE_U64;
}

static void choose_types(struct bhi_accumulator *a, bh_dtype dtype, bool parted) {
    switch (a->reducer) {
    case BHI_REDUCE_SUM:
    case BHI_REDUCE_PROD:
        a->dtype = sum_type(dtype);
        break;
    case BHI_REDUCE_MEAN:
        a->dtype = bhi_dtype_is_float(dtype) ? sum_type(dtype) : BH_DTYPE_F64;
        break;
    case BHI_REDUCE_ANY:
    case BHI_REDUCE_ALL:
        a->dtype = BH_DTYPE_BOOL;
        break;
    case BHI_REDUCE_ARGMIN:
    case BHI_REDUCE_ARGMAX:
        a->dtype = BH_DTYPE_U32;
        a->result = BH_DTYPE_I64;
        return;
    default:
        a->dtype = dtype;
    }
    a->result =
        dtype == BH_DTYPE_F16 && a->dtype == BH_DTYPE_F32 && !parted ? BH_DTYPE_F16 : a->dtype;
    a->divides = a->reducer == BHI_REDUCE_MEAN && !parted;
    if (a->dtype == BH_DTYPE_BOOL) {
        a->reducer = a->reducer == BHI_REDUCE_MAX   ? BHI_REDUCE_ANY
                     : a->reducer == BHI_REDUCE_MIN ? BHI_REDUCE_ALL
                                                    : a->reducer;
    }
}

/* The element's index if it is what was found, or a NaN: then there is nothing else to be found. */
static bool emit_find(struct bhi_emitter *emitter, const struct bhi_value *arguments,
                      struct bhi_value *out_value) {
    struct bhi_value x, equal;
    if (emitter->node->count != 3 || arguments[2].form != BHI_VALUE_TYPED ||
        arguments[2].dtype != BH_DTYPE_I64) {
        return bhi_emit_refuse(
            emitter, "this needs several kernels: `bulkhead eval` and Stream.eval plan them");
    }
    if (!bhi_emit_convert(emitter, &arguments[0], bhi_value_dtype(&arguments[0]), &x) ||
        !bhi_emit_binary(emitter, BHI_TOKEN_EQUAL, &x, &arguments[1], &equal)) {
        return false;
    }
    snprintf(emitter->accumulator.first, sizeof emitter->accumulator.first, "%s",
             arguments[2].text);
    if (bhi_dtype_is_float(x.dtype)) {
        bhi_emit_assign(emitter, BH_DTYPE_U32, false, out_value,
                        "%s || isnan(%s) ? bh_k : 0xffffffffu", equal.text, x.text);
    } else {
        bhi_emit_assign(emitter, BH_DTYPE_U32, false, out_value, "%s ? bh_k : 0xffffffffu",
                        equal.text);
    }
    emitter->wide = true;
    return true;
}

bool bhi_emit_reduction(struct bhi_emitter *emitter, const struct bhi_reduction *r,
                        const struct bhi_value *arguments, struct bhi_value *out_value) {
    static const uint32_t hides[] = {BHI_HELPER_HIDE_I32, BHI_HELPER_HIDE_U32, BHI_HELPER_HIDE_I64,
                                     BHI_HELPER_HIDE_U64};
    struct bhi_accumulator *a = &emitter->accumulator;
    *a = (struct bhi_accumulator){.reducer = bhi_function_reducer(r->function)};
    choose_types(a, bhi_value_dtype(&arguments[0]), r->parts != 0);
    const bool wide = bhi_dtype_size(a->dtype) == 8;
    if (bhi_dtype_is_float(a->dtype)) {
        emitter->helpers |= wide ? BHI_HELPER_HIDE_F64 : BHI_HELPER_HIDE_F32;
    } else if (a->dtype != BH_DTYPE_BOOL) {
        emitter->helpers |= hides[2 * wide + !bhi_dtype_is_signed(a->dtype)];
        emitter->wide |= wide;
    }
    if (a->result == BH_DTYPE_F16) {
        emitter->helpers |= BHI_HELPER_HALF;
    }
    if (bhi_reducer_finds(a->reducer)) {
        return emit_find(emitter, arguments, out_value);
    }
    return bhi_emit_convert(emitter, &arguments[0], a->dtype, out_value);
}

/* -- all elements ------------------------------------------------------------------------------- */

/* The bits of what no elements give; of min and max, what no element is beyond. */
static uint64_t identity(const struct bhi_accumulator *a) {
    const uint32_t bits = 8 * bhi_dtype_size(a->dtype);
    const bool is_signed = bhi_dtype_is_signed(a->dtype), real = bhi_dtype_is_float(a->dtype);
    const uint64_t ones = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    const uint64_t one = bits == 16 ? 0x3c00 : bits == 32 ? 0x3f800000 : 0x3ff0000000000000;
    const uint64_t infinity = bits == 16 ? 0x7c00 : bits == 32 ? 0x7f800000 : 0x7ff0000000000000;
    const uint64_t sign = UINT64_C(1) << (bits - 1);
    switch (a->reducer) {
    case BHI_REDUCE_PROD:
        return real ? one : 1;
    case BHI_REDUCE_ALL:
        return 1;
    case BHI_REDUCE_MIN:
    case BHI_REDUCE_ARGMIN:
    case BHI_REDUCE_ARGMAX: /* the least index */
        return real ? infinity : is_signed ? ones >> 1 : ones;
    case BHI_REDUCE_MAX:
        return real ? infinity | sign : is_signed ? sign : 0;
    default:
        return 0;
    }
}

bool bhi_accumulator_blocks(const struct bhi_accumulator *a) {
    return bhi_dtype_is_float(a->dtype) &&
           (a->reducer == BHI_REDUCE_SUM || a->reducer == BHI_REDUCE_MEAN);
}

void bhi_accumulator_declare(const struct bhi_accumulator *a, struct bhi_pen *pen,
                             const char *name) {
    const char *type = bhi_register_type(a->dtype);
    const bool hidden = a->dtype != BH_DTYPE_BOOL;
    char text[BHI_CONSTANT_TEXT];
    uint32_t words[2];
    bhi_constant_put(a->dtype, identity(a), words);
    bhi_pen_put(pen, "    %s%s %s = %s(%s);\n", bhi_dtype_is_float(a->dtype) ? "precise " : "",
                type, name, hidden ? "hide" : "",
                bhi_constant_text(a->dtype, type, 0, words, text));
}

void bhi_accumulator_add(const struct bhi_accumulator *a, struct bhi_pen *pen, const char *name,
                         const char *value) {
    const bool least = a->reducer != BHI_REDUCE_MAX;
    switch (a->reducer) {
    case BHI_REDUCE_SUM:
    case BHI_REDUCE_MEAN:
    case BHI_REDUCE_PROD:
        bhi_pen_put(pen, "    %s = %s %c %s;\n", name, name,
                    a->reducer == BHI_REDUCE_PROD ? '*' : '+', value);
        break;
    case BHI_REDUCE_ANY:
    case BHI_REDUCE_ALL:
        bhi_pen_put(pen, "    %s = %s %s %s;\n", name, name,
                    a->reducer == BHI_REDUCE_ANY ? "||" : "&&", value);
        break;
    default:
        if (bhi_dtype_is_float(a->dtype)) {
            bhi_pen_put(pen, "    %s = %s %s %s || isnan(%s) ? %s : %s;\n", name, name,
                        least ? "<=" : ">=", value, name, name, value);
        } else {
            bhi_pen_put(pen, "    %s = %s(%s, %s);\n", name, least ? "min" : "max", name, value);
        }
    }
}

void bhi_accumulator_finish(const struct bhi_accumulator *a, struct bhi_pen *pen, const char *name,
                            const char *result) {
    const char *type = bhi_register_type(a->result);
    bhi_pen_put(pen, "    %s%s %s = ", bhi_dtype_is_float(a->result) ? "precise " : "", type,
                result);
    if (bhi_reducer_finds(a->reducer)) {
        bhi_pen_put(pen, "%s == 0xffffffffu ? 0x7fffffffffffffffl : int64_t(%s) + %s;\n", name,
                    name, a->first);
    } else if (a->divides) {
        bhi_pen_put(pen, "%s / %s(bh_length);\n", name, type);
    } else {
        bhi_pen_put(pen, "%s;\n", name);
    }
}
