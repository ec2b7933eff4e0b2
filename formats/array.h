/* The description of an array in a file: element type, shape, size in bytes. */
#ifndef BHI_FORMATS_ARRAY_H
#define BHI_FORMATS_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/complaint.h"
#include "formats/dtype.h"

enum { BHI_MAX_DIMENSIONS = 64 };

/* An array's element type and C-order shape; no dimensions: one element. */
struct bhi_array {
    bh_dtype dtype;
    uint32_t dimensions;
    uint64_t shape[BHI_MAX_DIMENSIONS];
    uint64_t bytes; /* of all elements; checked not to overflow */
};

/* Fills in array->bytes from dtype and shape; refuses what overflows 64 bits. */
bool bhi_array_measure(struct bhi_array *array, struct bhi_complaint *complaint);
#endif
