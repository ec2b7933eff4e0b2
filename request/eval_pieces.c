#include "request/eval_pieces.h"

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

/* The result is cut along one dimension, into runs of |rows| of its steps; along those before it, into
 * single steps; not along those behind it. So a piece of any array is contiguous. */
struct cut {
    uint32_t rank;
    uint64_t shape[BH_MAX_RANK]; /* of the result */
    uint32_t along;
    uint64_t rows;
    uint64_t pieces;
};

/* The size of an array in a dimension of the result, from which it may be stretched. */
static uint64_t size_in(const struct array *array, const struct cut *cut, uint32_t dimension) {
    const uint32_t missing = cut->rank - array->whole.rank;
    return dimension < missing ? 1 : array->whole.shape[dimension - missing];
}

/* Elements between an array's steps in a dimension; 0: it is stretched there. */
static uint64_t step_in(const struct array *array, const struct cut *cut, uint32_t dimension) {
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
static void take_shape(struct arrays *arrays, struct cut *out) {
    const struct array *result = &arrays->of[arrays->count - 1];
    bool flat = true;
    *out = (struct cut){.rank = result->whole.rank, .pieces = 1};
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
static uint64_t aligned_rows(const struct arrays *arrays, const struct cut *cut,
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
                       struct cut *out) {
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
    out->pieces = (size + out->rows - 1) / out->rows;
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
static const char *take_part(const struct arrays *arrays, const struct cut *cut, uint64_t index,
                             uint32_t alignment, struct part *out) {
    const uint64_t size = cut->shape[cut->along], runs = (size + cut->rows - 1) / cut->rows;
    const uint64_t first = index % runs * cut->rows, rest = size - first;
    const char *misplaced = NULL;
    for (uint32_t i = 0; i < arrays->count; i++) {
        const struct array *array = &arrays->of[i];
        bh_description *one = &out->descriptions[i];
        uint64_t at = first * step_in(array, cut, cut->along), outer = index / runs;
        for (uint32_t k = cut->along; k-- > 0; outer /= cut->shape[k]) {
            at += outer % cut->shape[k] * step_in(array, cut, k);
        }
        *one = array->whole;
        one->offset += at * (one->bits / 8);
        one->strided = false;
        one->rank = cut->rank - cut->along;
        for (uint32_t k = cut->along; k < cut->rank; k++) {
            one->shape[k - cut->along] = size_in(array, cut, k);
        }
        if (one->shape[0] != 1) {
            one->shape[0] = rest < cut->rows ? rest : cut->rows;
        }
        out->arguments[i].description = one;
        misplaced = one->offset % alignment ? out->arguments[i].name : misplaced;
    }
    return misplaced;
}

static bh_status refuse(bh_detail *detail, bh_status status, const char *name) {
    snprintf(detail->message, sizeof detail->message,
             status == BH_NO_MEMORY
                 ? "out of memory"
                 : "the arrays are too large to be computed at once, and a piece "
                   "of '%.63s' would not begin where the device can bind it",
             name);
    detail->sys_errno = status == BH_NO_MEMORY ? ENOMEM : 0;
    return detail->status = status;
}

bh_status bhi_pieces_cut(struct bhi_pieces *out_pieces, bh_template *template_,
                         const bh_argument *arguments, uint32_t count, uint32_t arrays,
                         uint64_t bytes, uint32_t alignment, bh_detail *detail) {
    struct arrays all;
    struct cut cut;
    struct part part;
    bh_description result = {.struct_size = sizeof result};
    *out_pieces = (struct bhi_pieces){0};
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
    out_pieces->calls = calloc(cut.pieces, sizeof *out_pieces->calls);
    out_pieces->commands = calloc(cut.pieces, sizeof *out_pieces->commands);
    if (!out_pieces->calls || !out_pieces->commands) {
        bhi_pieces_free(out_pieces);
        return refuse(detail, BH_NO_MEMORY, "");
    }
    for (uint64_t i = 0; i < cut.pieces && status == BH_OK; i++) {
        const char *misplaced = cut.pieces > 1 ? take_part(&all, &cut, i, alignment, &part) : NULL;
        status = misplaced ? refuse(detail, BH_TOO_LARGE, misplaced)
                           : bh_template_prepare(template_, part.arguments, count, NULL,
                                                 &out_pieces->calls[i], detail);
        if (status == BH_OK) {
            out_pieces->commands[out_pieces->count++] = out_pieces->calls[i].command;
        }
    }
    if (status != BH_OK) {
        bhi_pieces_free(out_pieces);
    }
    return status;
}

void bhi_pieces_free(struct bhi_pieces *pieces) {
    for (uint32_t i = 0; i < pieces->count; i++) {
        bh_template_call_fini(&pieces->calls[i]);
    }
    free(pieces->calls);
    free(pieces->commands);
    *pieces = (struct bhi_pieces){0};
}
