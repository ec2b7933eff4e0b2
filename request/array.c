#include "request/array.h"

#include <string.h>

bool bhi_run_take_array(struct bhi_run_binding *binding, struct bhi_complaint *complaint) {
    bh_array_info info;
    struct bhi_array *array = &binding->array;
    if (bh_buffer_array(binding->buffer, &info) != BH_OK)
        return bhi_refuse(complaint, "no array");
    array->bytes = bh_buffer_size(binding->buffer);
    binding->tensor_dtype = info.dtype;
    if (info.dtype == BH_DTYPE_BOOL)
        array->dtype = BHI_DTYPE_bool;
    else if (info.dtype >= BH_DTYPE_F16 && info.dtype <= BH_DTYPE_U64)
        array->dtype = (enum bhi_dtype)(info.dtype - BH_DTYPE_F16);
    else if (binding->tensor)
        array->dtype = BHI_DTYPE_COUNT; /* it is only read, whatever its elements are */
    else
        return bhi_refuse(complaint, "its dtype is not one of %s", BHI_DTYPE_NAMES);
    array->dimensions = info.dimensions;
    memcpy(array->shape, info.shape, info.dimensions * sizeof info.shape[0]);
    return true;
}
_Static_assert(BH_DTYPE_U64 - BH_DTYPE_F16 == BHI_DTYPE_u64 && BHI_DTYPE_COUNT == BHI_DTYPE_u64 + 2,
               "the same order, and bool");
