#include "formats/array.h"

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
