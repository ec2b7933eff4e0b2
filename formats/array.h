/* The description of an array in a file: element type, shape, size in bytes. */
#ifndef BHI_FORMATS_ARRAY_H
#define BHI_FORMATS_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/complaint.h"
#include "formats/dtype.h"

enum { BHI_MAX_DIMENSIONS = 64 };

/* An array's element type and its shape. An array without dimensions has one element. */
struct bhi_array {
    bh_dtype dtype;
    uint32_t dimensions;
    uint64_t shape[BHI_MAX_DIMENSIONS];
    uint64_t bytes; /* of all elements; does not overflow */
    bool fortran;   /* the first index counts fastest, and in C order the bytes would be others */
};

/* Computes array->bytes from dtype and shape. Refuses a shape with more bytes than 64 bits can
 * count. */
bool bhi_array_measure(struct bhi_array *array, struct bhi_complaint *complaint);
/* Copies elements of |size| bytes from Fortran order to C order. At least one dimension. */
void bhi_array_transpose(uint32_t size, uint32_t dimensions, const uint64_t *shape,
                         const void *fortran, void *out);
#endif
