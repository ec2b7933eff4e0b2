#include "formats/array.h"

#include <string.h>

bool bhi_array_measure(struct bhi_array *array, struct bhi_complaint *complaint) {
    uint64_t bytes = bhi_dtype_size(array->dtype);
    /* A zero makes the array empty. The other sizes are still checked for overflow. */
    bool empty = false;
    for (uint32_t i = 0; i < array->dimensions; i++) {
        if (array->shape[i] == 0) {
            empty = true;
        } else if (__builtin_mul_overflow(bytes, array->shape[i], &bytes)) {
            return bhi_refuse(complaint, "the shape has more elements than 64 bits can count");
        }
    }
    array->bytes = empty ? 0 : bytes;
    return true;
}

void bhi_array_transpose(uint32_t size, uint32_t dimensions, const uint64_t *shape,
                         const void *fortran, void *out) {
    const uint32_t last = dimensions - 1;
    const uint8_t *from = fortran;
    uint8_t *to = out;
    uint64_t index[BHI_MAX_DIMENSIONS] = {0}, stride[BHI_MAX_DIMENSIONS] = {size};
    bool more = true;
    for (uint32_t i = 0; i < dimensions; i++) {
        more &= shape[i] > 0;
        stride[i] = i ? stride[i - 1] * shape[i - 1] : size;
    }
    while (more) {
        for (uint64_t i = 0; i < shape[last]; i++, to += size) {
            memcpy(to, from + i * stride[last], size);
        }
        more = false;
        for (uint32_t i = last; i-- > 0 && !more;) {
            more = ++index[i] < shape[i];
            from += stride[i];
            if (!more) {
                from -= stride[i] * shape[i];
                index[i] = 0;
            }
        }
    }
}
