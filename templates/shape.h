/* Shapes of arrays, and which shapes an expression can combine. */
#ifndef BHI_TEMPLATES_SHAPE_H
#define BHI_TEMPLATES_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

#include <bulkhead/array.h>

struct bhi_shape {
    uint32_t rank;
    uint64_t size[BH_MAX_RANK];
    uint64_t count; /* of elements */
};

struct bhi_named_shape {
    const char *name;
    struct bhi_shape shape;
};

/* The shape of what is computed elementwise of |arrays|, as in NumPy: all of the same shape, but
 * that those of a single element go with any. None: a single element without dimensions. */
bool bhi_shape_join(const struct bhi_named_shape *arrays, uint32_t count,
                    struct bhi_shape *out_shape, struct bhi_complaint *complaint);
bool bhi_shape_equal(const struct bhi_shape *a, const struct bhi_shape *b);
/* "[3,4]" */
const char *bhi_shape_text(const struct bhi_shape *shape, char *out, size_t capacity);

#endif
