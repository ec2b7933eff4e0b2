/* Shapes of arrays, and which of them an expression can combine. */
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
    uint64_t count; /* number of elements */
};

struct bhi_named_shape {
    const char *name;
    struct bhi_shape shape;
};

/* The shape of the result of an elementwise operation on |arrays|. All must have the same shape;
 * only a single element fits every shape. Without arrays the result is a single element without
 * dimensions. */
bool bhi_shape_join(const struct bhi_named_shape *arrays, uint32_t count,
                    struct bhi_shape *out_shape, struct bhi_complaint *complaint);
bool bhi_shape_equal(const struct bhi_shape *a, const struct bhi_shape *b);
/* Writes the shape as "[3,4]". */
const char *bhi_shape_text(const struct bhi_shape *shape, char *out, size_t capacity);

#endif
