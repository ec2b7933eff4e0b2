#include "request/eval_pieces.h"
#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct array {
    bh_description whole;
    uint64_t elements;
};

/* All arrays; the last ones are outputs, which have the shape of the result. */
struct arrays {
    struct array of[BH_MAX_PARAMETERS];
    uint32_t count;
    uint64_t bytes; /* of the largest */
};

static bh_status look(struct arrays *arrays, const bh_argument *arguments, uint32_t count,
                      bh_detail *detail) {
    *arrays = (struct arrays){.count = count};
    for (uint32_t i = 0; i < count; i++) {
        struct array *array = &arrays->of[i];
        array->whole = (bh_description){.struct_size = sizeof(bh_description)};
        if (arguments[i].description) {
            array->whole = *arguments[i].description;
        } else {
            const bh_status status =
                bh_buffer_description(arguments[i].buffer, &array->whole, detail);
            if (status != BH_OK) {
                return status;
            }
        }
        array->elements = 1;
        for (uint32_t k = 0; k < array->whole.rank; k++) {
            array->elements *= array->whole.shape[k]; /* cannot overflow: the array is in memory */
        }
        const uint64_t bytes = array->elements * (array->whole.bits / 8);
        arrays->bytes = bytes > arrays->bytes ? bytes : arrays->bytes;
    }
    return BH_OK;
}

bh_status bhi_pieces_measure(const bh_argument *arguments, uint32_t arrays, uint64_t *out_bytes,
                             bh_detail *detail) {
    struct arrays all;
    const bh_status status = look(&all, arguments, arrays, detail);
    *out_bytes = status == BH_OK ? all.bytes : 0;
    return status;
}

/* -- where to cut ----------------------------------------------------------------------------- */

/* The size of an array in a dimension of the result, from which it may be stretched. */
static uint64_t size_in(const struct array *array, const struct bhi_piece_cut *cut,
                        uint32_t dimension) {
    const uint32_t missing = cut->rank - array->whole.rank;
    return dimension < missing ? 1 : array->whole.shape[dimension - missing];
}

/* Elements between an array's steps in a dimension; 0: it is stretched there. */
static uint64_t step_in(const struct array *array, const struct bhi_piece_cut *cut,
                        uint32_t dimension) {
    uint64_t step = 1;
    if (size_in(array, cut, dimension) == 1) {
        return 0;
    }
    for (uint32_t k = dimension + 1; k < cut->rank; k++) {
        step *= size_in(array, cut, k);
    }
    return step;
}

/* Takes the shape of the result. Where arrays are as large as it or single elements, and so not
 * stretched along some dimensions alone, there is one dimension. */
static void take_shape(struct arrays *arrays, struct bhi_piece_cut *out) {
    const struct array *result = &arrays->of[arrays->count - 1];
    bool flat = true;
    *out = (struct bhi_piece_cut){.rank = result->whole.rank, .pieces = 1};
    memcpy(out->shape, result->whole.shape, sizeof out->shape);
    for (uint32_t i = 0; i < arrays->count; i++) {
        flat &= arrays->of[i].elements == result->elements || arrays->of[i].elements == 1;
    }
    if (flat || out->rank == 0) {
        out->rank = 1;
        out->shape[0] = result->elements;
        for (uint32_t i = 0; i < arrays->count; i++) {
            arrays->of[i].whole.rank = 1;
            arrays->of[i].whole.shape[0] = arrays->of[i].elements;
        }
    }
}

/* Returns the smallest number of steps after which each array has a multiple of |alignment| bytes. */
static uint64_t aligned_rows(const struct arrays *arrays, const struct bhi_piece_cut *cut,
                             uint32_t alignment) {
    uint64_t rows = 1;
    for (uint32_t i = 0; i < arrays->count; i++) {
        const struct array *array = &arrays->of[i];
        const uint64_t bytes = step_in(array, cut, cut->along) * (array->whole.bits / 8);
        while (rows < alignment && rows * bytes % alignment) {
            rows *= 2;
        }
    }
    return rows;
}

static void choose_cut(const struct arrays *arrays, uint64_t bytes, uint32_t alignment,
                       struct bhi_piece_cut *out) {
    uint64_t widest = 1, inner = 1;
    for (uint32_t i = 0; i < arrays->count; i++) {
        const uint64_t width = arrays->of[i].whole.bits / 8;
        widest = arrays->of[i].elements > 1 && width > widest ? width : widest;
    }
    const uint64_t elements = bytes / widest ? bytes / widest : 1;
    out->along = out->rank - 1;
    while (out->along && inner * out->shape[out->along] <= elements) {
        inner *= out->shape[out->along--];
    }
    const uint64_t size = out->shape[out->along], step = aligned_rows(arrays, out, alignment);
    out->rows = elements / inner / step * step;
    out->rows = out->rows ? out->rows : step;
    /* A last piece with a single step would need a kernel of its own. */
    if (out->rows > step && size % out->rows == 1) {
        out->rows -= step;
    }
    out->pieces = out->runs = (size + out->rows - 1) / out->rows;
    for (uint32_t k = 0; k < out->along; k++) {
        out->pieces *= out->shape[k];
    }
}

/* -- pieces ----------------------------------------------------------------------------------- */

/* The arguments of one piece. */
struct part {
    bh_argument arguments[BH_MAX_PARAMETERS];
    bh_description descriptions[BH_MAX_PARAMETERS]; /* of the arrays */
};

/* Makes of each array what piece |index| needs of it. Returns an array that does not begin at a multiple
 * of |alignment| there; NULL: all do. */
static const char *take_part(const struct arrays *arrays, const struct bhi_piece_cut *cut,
                             uint64_t index, uint32_t alignment, struct part *out) {
    const uint64_t first = index % cut->runs * cut->rows, rest = cut->shape[cut->along] - first;
    const char *misplaced = NULL;
    for (uint32_t i = 0; i < arrays->count; i++) {
        const struct array *array = &arrays->of[i];
        bh_description *one = &out->descriptions[i];
        uint64_t at = first * step_in(array, cut, cut->along), outer = index / cut->runs;
        for (uint32_t k = cut->along; k-- > 0; outer /= cut->shape[k]) {
            at += outer % cut->shape[k] * step_in(array, cut, k);
        }
        *one = array->whole;
        one->offset += at * (one->bits / 8);
        one->strided = false;
        const uint32_t from = cut->reduces ? 0 : cut->along, along = cut->along - from;
        one->rank = cut->rank - from;
        for (uint32_t k = from; k < cut->rank; k++) {
            one->shape[k - from] = k < cut->along ? 1 : size_in(array, cut, k);
        }
        if (one->shape[along] != 1) {
            one->shape[along] = rest < cut->rows ? rest : cut->rows;
        }
        out->arguments[i].description = one;
        misplaced = one->offset % alignment ? out->arguments[i].name : misplaced;
    }
    return misplaced;
}

/* |name|: the array that begins where none can be bound; "": one that the caller has not named. */
static bh_status refuse(bh_detail *detail, bh_status status, const char *name) {
    char which[80] = "one";
    if (*name) {
        snprintf(which, sizeof which, "'%.63s'", name);
    }
    if (status == BH_NO_MEMORY) {
        snprintf(detail->message, sizeof detail->message, "out of memory");
    } else {
        snprintf(detail->message, sizeof detail->message,
                 "the arrays are too large to be computed at once, and a piece of %s would not "
                 "begin where the device can bind it",
                 which);
    }
    detail->sys_errno = status == BH_NO_MEMORY ? ENOMEM : 0;
    return detail->status = status;
}

bool bhi_pieces_keep(struct bhi_pieces *pieces, bh_buffer *buffer) {
    if (!BHI_ARRAY_RESERVE(pieces->scratch, pieces->scratch_capacity, pieces->scratch_count + 1)) {
        return false;
    }
    pieces->scratch[pieces->scratch_count++] = buffer;
    return true;
}

bh_status bhi_pieces_add(struct bhi_pieces *pieces, bh_template *template_,
                         const bh_argument *arguments, uint32_t count, bh_detail *detail) {
    const uint32_t needed = pieces->count + 1;
    if (!BHI_ARRAY_RESERVE(pieces->calls, pieces->call_capacity, needed) ||
        !BHI_ARRAY_RESERVE(pieces->commands, pieces->command_capacity, needed)) {
        return refuse(detail, BH_NO_MEMORY, "");
    }
    bh_template_call *call = malloc(sizeof *call);
    if (!call) {
        return refuse(detail, BH_NO_MEMORY, "");
    }
    const bh_status status = bh_template_prepare(template_, arguments, count, NULL, call, detail);
    if (status != BH_OK) {
        free(call);
        return status;
    }
    pieces->calls[pieces->count] = call;
    pieces->commands[pieces->count++] = call->command;
    return BH_OK;
}

bh_status bhi_pieces_cut(struct bhi_pieces *pieces, bh_template *template_,
                         const bh_argument *arguments, uint32_t count, uint32_t arrays,
                         uint64_t bytes, uint32_t alignment, bh_detail *detail) {
    struct arrays all;
    struct bhi_piece_cut cut;
    struct part part;
    bh_description result = {.struct_size = sizeof result};
    bh_status status = look(&all, arguments, arrays, detail);
    if (status != BH_OK) {
        return status;
    }
    memcpy(part.arguments, arguments, count * sizeof *arguments);
    take_shape(&all, &cut);
    if (bytes && all.bytes > bytes && all.of[arrays - 1].elements) {
        /* Refuses shapes that do not go together: their pieces might. */
        status = bh_template_output(template_, arguments, count, arguments[arrays - 1].name,
                                    &result, detail);
        if (status != BH_OK) {
            return status;
        }
        choose_cut(&all, bytes, alignment, &cut);
    }
    for (uint64_t i = 0; i < cut.pieces && status == BH_OK; i++) {
        const char *misplaced = cut.pieces > 1 ? take_part(&all, &cut, i, alignment, &part) : NULL;
        status = misplaced ? refuse(detail, BH_TOO_LARGE, misplaced)
                           : bhi_pieces_add(pieces, template_, part.arguments, count, detail);
    }
    return status;
}

/* -- reductions ------------------------------------------------------------------------------- */

/* The steps that a piece takes along an axis of the operand. */
static uint64_t steps_of(const struct bhi_piece_cut *cut, uint64_t index, uint32_t axis) {
    const uint64_t size = cut->shape[cut->along], first = index % cut->runs * cut->rows;
    return axis < cut->along          ? 1
           : axis > cut->along        ? cut->shape[axis]
           : size - first < cut->rows ? size - first
                                      : cut->rows;
}

/* The first of these. */
static uint64_t first_of(const struct bhi_piece_cut *cut, uint64_t index, uint32_t axis) {
    uint64_t outer = index / cut->runs;
    if (axis >= cut->along) {
        return axis > cut->along ? 0 : index % cut->runs * cut->rows;
    }
    for (uint32_t k = cut->along; --k > axis;) {
        outer /= cut->shape[k];
    }
    return outer % cut->shape[axis];
}

bh_status bhi_pieces_cut_operand(const bh_argument *arguments, uint32_t arrays, uint32_t bits,
                                 uint64_t bytes, uint32_t alignment, struct bhi_piece_cut *cut,
                                 bh_detail *detail) {
    struct arrays all;
    const bh_status status = look(&all, arguments, arrays, detail);
    cut->reduces = true;
    cut->pieces = cut->runs = 1;
    cut->length = 1;
    if (status != BH_OK) {
        return status;
    }
    struct array *results = &all.of[all.count++];
    *results = (struct array){.elements = 1};
    results->whole.rank = cut->rank;
    results->whole.bits = bits;
    uint64_t elements = 1;
    for (uint32_t k = 0; k < cut->rank; k++) {
        results->whole.shape[k] = cut->reduced[k] ? 1 : cut->shape[k];
        results->elements *= results->whole.shape[k];
        elements *= cut->shape[k];
    }
    const bool large = bytes && all.bytes > bytes;
    if (!cut->rank || !elements || (!large && elements <= BHI_PIECE_ELEMENTS)) {
        return BH_OK;
    }
    const uint64_t most = BHI_PIECE_ELEMENTS; /* each of 8 bytes at most */
    choose_cut(&all, large && bytes < most ? bytes : most, alignment, cut);
    for (uint32_t k = cut->along; k < cut->rank; k++) {
        cut->length *= cut->reduced[k] ? steps_of(cut, 0, k) : 1;
        cut->splits |= k == cut->along && cut->reduced[k];
    }
    return BH_OK;
}

uint64_t bhi_piece_cut_steps(const struct bhi_piece_cut *cut, uint32_t axis) {
    return axis < cut->along     ? cut->shape[axis]
           : !cut->reduced[axis] ? cut->shape[axis]
           : axis == cut->along  ? cut->runs
                                 : 1;
}

bh_status bhi_pieces_reduce(struct bhi_pieces *pieces, bh_template *template_,
                            const bh_argument *arguments, uint32_t count, uint32_t arrays,
                            const struct bhi_piece_cut *cut, uint32_t parts, uint32_t alignment,
                            bh_argument *first, bh_detail *detail) {
    struct arrays all;
    struct part part;
    const bh_argument *output = &arguments[arrays - 1];
    bh_status status = look(&all, arguments, arrays - 1, detail);
    for (uint64_t i = 0; i < cut->pieces && status == BH_OK; i++) {
        bh_description *one = &part.descriptions[arrays - 1];
        uint64_t at = 0, index = 0;
        memcpy(part.arguments, arguments, count * sizeof *arguments);
        *one = *output->description;
        one->rank = 0;
        for (uint32_t k = 0; k < cut->rank; k++) {
            const bool split = k == cut->along && cut->reduced[k];
            at = at * bhi_piece_cut_steps(cut, k) + (split ? i % cut->runs : first_of(cut, i, k));
            if (cut->reduced[k]) {
                index = index * cut->shape[k] + first_of(cut, i, k);
            } else {
                one->shape[one->rank++] = steps_of(cut, i, k);
            }
        }
        one->shape[one->rank++] = parts;
        one->offset += at * parts * (one->bits / 8);
        part.arguments[arrays - 1].description = one;
        if (first) {
            part.arguments[first - arguments].bits = index;
        }
        const bool misplaced = take_part(&all, cut, i, alignment, &part) || one->offset % alignment;
        status = misplaced ? refuse(detail, BH_TOO_LARGE, "")
                           : bhi_pieces_add(pieces, template_, part.arguments, count, detail);
    }
    return status;
}

void bhi_pieces_free(struct bhi_pieces *pieces) {
    for (uint32_t i = 0; i < pieces->count; i++) {
        bh_template_call_fini(pieces->calls[i]);
        free(pieces->calls[i]);
    }
    for (uint32_t i = 0; i < pieces->scratch_count; i++) {
        bh_buffer_release(pieces->scratch[i]);
    }
    free(pieces->calls);
    free(pieces->commands);
    free(pieces->scratch);
    *pieces = (struct bhi_pieces){0};
}
