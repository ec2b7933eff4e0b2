#include "request/eval_pieces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct array {
    bh_description whole;
    uint64_t elements;
};

struct arrays {
    struct array of[BH_MAX_PARAMETERS];
    uint32_t count;
    uint64_t elements; /* of the result */
    uint64_t widest;   /* bytes of the widest element, of the arrays with that many elements */
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
        if (i == 0 || array->elements == 0 || arrays->elements == 1) {
            arrays->elements = array->elements;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t bytes = arrays->of[i].whole.bits / 8;
        if (arrays->of[i].elements == arrays->elements && bytes > arrays->widest) {
            arrays->widest = bytes;
        }
    }
    return BH_OK;
}

bh_status bhi_pieces_measure(const bh_argument *arguments, uint32_t arrays, uint64_t *out_bytes,
                             bh_detail *detail) {
    struct arrays all;
    const bh_status status = look(&all, arguments, arrays, detail);
    *out_bytes = status == BH_OK ? all.elements * all.widest : 0;
    return status;
}

/* The arguments of one piece. */
struct part {
    bh_argument arguments[BH_MAX_PARAMETERS];
    bh_description descriptions[BH_MAX_PARAMETERS]; /* of the arrays */
};

/* Makes of each array |elements| elements from |first| on, of a single element that one. */
static void take_part(const struct arrays *arrays, uint64_t first, uint64_t elements,
                      struct part *out) {
    for (uint32_t i = 0; i < arrays->count; i++) {
        const struct array *array = &arrays->of[i];
        const bool single = array->elements != arrays->elements;
        bh_description *one = &out->descriptions[i];
        *one = array->whole;
        one->offset += single ? 0 : first * (one->bits / 8);
        one->rank = 1; /* of a single element, too: the result has the highest rank */
        one->strided = false;
        one->shape[0] = single ? 1 : elements;
        out->arguments[i].description = one;
    }
}

/* Returns how many elements a piece has. */
static uint64_t piece_of(const struct arrays *arrays, uint64_t bytes, uint32_t alignment) {
    const uint64_t all = arrays->elements;
    if (!bytes || all * arrays->widest <= bytes) {
        return all;
    }
    uint64_t piece = bytes / arrays->widest / alignment * alignment;
    /* A last piece with a single element would need a kernel of its own. */
    if (piece > alignment && all % piece == 1) {
        piece -= alignment;
    }
    return piece ? piece : alignment;
}

bh_status bhi_pieces_cut(struct bhi_pieces *out_pieces, bh_template *template_,
                         const bh_argument *arguments, uint32_t count, uint32_t arrays,
                         uint64_t bytes, uint32_t alignment, bh_detail *detail) {
    struct arrays all;
    *out_pieces = (struct bhi_pieces){0};
    bh_status status = look(&all, arguments, arrays, detail);
    if (status != BH_OK) {
        return status;
    }
    struct part part;
    memcpy(part.arguments, arguments, count * sizeof *arguments);
    const uint64_t piece = piece_of(&all, bytes, alignment);
    const uint64_t pieces = piece ? (all.elements + piece - 1) / piece : 1;
    out_pieces->calls = calloc(pieces, sizeof *out_pieces->calls);
    out_pieces->commands = calloc(pieces, sizeof *out_pieces->commands);
    if (!out_pieces->calls || !out_pieces->commands) {
        bhi_pieces_free(out_pieces);
        snprintf(detail->message, sizeof detail->message, "out of memory");
        detail->sys_errno = ENOMEM;
        return detail->status = BH_NO_MEMORY;
    }
    for (uint64_t i = 0; i < pieces && status == BH_OK; i++) {
        const uint64_t first = i * piece, rest = all.elements - first;
        if (pieces > 1) {
            take_part(&all, first, rest < piece ? rest : piece, &part);
        }
        status = bh_template_prepare(template_, part.arguments, count, NULL, &out_pieces->calls[i],
                                     detail);
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
