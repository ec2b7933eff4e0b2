#include "request/array.h"
#include <bulkhead/file.h>

#include <string.h>

bool bhi_run_take_array(struct bhi_run_binding *binding, struct bhi_complaint *complaint) {
    bh_array_info info = {.struct_size = sizeof info};
    struct bhi_array *array = &binding->array;
    if (bh_buffer_array(binding->buffer, &info, NULL) != BH_OK) {
        return bhi_refuse(complaint, "no array");
    }
    array->bytes = bh_buffer_size(binding->buffer);
    binding->tensor_dtype = info.dtype;
    array->dtype = info.dtype;
    if (!bhi_dtype_is_known(info.dtype)) {
        if (!binding->tensor) {
            return bhi_refuse(complaint, "its dtype is not one of %s", BHI_DTYPE_NAMES);
        }
        array->dtype = BH_DTYPE_NONE; /* it is only read, so its element type does not matter */
    }
    array->dimensions = info.rank;
    memcpy(array->shape, info.shape, info.rank * sizeof info.shape[0]);
    return true;
}
