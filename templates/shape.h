/* Shapes of arrays, and which of them elementwise code can combine: NumPy's broadcasting. */
#ifndef BHI_TEMPLATES_SHAPE_H
#define BHI_TEMPLATES_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/complaint.h"

#include <bulkhead/array.h>

enum { BHI_MAX_AXES = 8 };

struct bhi_shape {
    uint32_t rank;
    uint64_t size[BH_MAX_RANK];
    uint64_t count; /* number of elements */
};

struct bhi_named_shape {
    const char *name;
    struct bhi_shape shape;
};

/* The result as a kernel walks over it. Dimensions that no array tells apart are one axis, so equal
 * shapes have one axis, and so have single elements beside them. */
struct bhi_axes {
    uint32_t count;              /* 1 to BHI_MAX_AXES */
    uint32_t size[BHI_MAX_AXES]; /* the outermost first */
};

/* The shape of the result of an elementwise operation on |arrays|. Shapes are aligned at their last
 * dimension; missing dimensions and those of size 1 are stretched. Without arrays the result is a
 * single element without dimensions. */
bool bhi_shape_join(const struct bhi_named_shape *arrays, uint32_t count,
                    struct bhi_shape *out_shape, struct bhi_complaint *complaint);
/* Finds the axes of |result|, which is what |arrays| join to and has less than 2^32 elements. Bit k of
 * |out_has| says whether an array has axis k, or is stretched along it. */
bool bhi_shape_axes(const struct bhi_shape *result, const struct bhi_named_shape *arrays,
                    uint32_t count, struct bhi_axes *out_axes, uint8_t *out_has,
                    struct bhi_complaint *complaint);
bool bhi_shape_equal(const struct bhi_shape *a, const struct bhi_shape *b);
/* Writes the shape as "[3,4]". */
const char *bhi_shape_text(const struct bhi_shape *shape, char *out, size_t capacity);

#endif
