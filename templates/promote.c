#include "templates/promote.h"

bool bhi_dtype_is_float(enum bhi_dtype dtype) {
    return dtype <= BHI_DTYPE_f64;
}

bool bhi_dtype_is_signed(enum bhi_dtype dtype) {
    return dtype == BHI_DTYPE_i8 || dtype == BHI_DTYPE_i16 || dtype == BHI_DTYPE_i32 ||
           dtype == BHI_DTYPE_i64;
}

bool bhi_dtype_is_integer(enum bhi_dtype dtype) {
    return !bhi_dtype_is_float(dtype) && dtype != BHI_DTYPE_bool;
}

static enum bhi_dtype larger(enum bhi_dtype a, enum bhi_dtype b) {
    return bhi_dtype_size(a) < bhi_dtype_size(b) ? b : a;
}

static enum bhi_dtype signed_of(uint32_t bytes) {
    return bytes == 2 ? BHI_DTYPE_i16 : bytes == 4 ? BHI_DTYPE_i32 : BHI_DTYPE_i64;
}

/* The smallest float that holds all (f16, f32) or most (f64) of an integer's values. */
static enum bhi_dtype float_of(enum bhi_dtype integer) {
    const uint32_t bytes = bhi_dtype_size(integer);
    return bytes == 1 ? BHI_DTYPE_f16 : bytes == 2 ? BHI_DTYPE_f32 : BHI_DTYPE_f64;
}

enum bhi_dtype bhi_promote(enum bhi_dtype a, enum bhi_dtype b) {
    if (a == b || b == BHI_DTYPE_bool) {
        return a;
    }
    if (a == BHI_DTYPE_bool) {
        return b;
    }
    if (bhi_dtype_is_float(a) || bhi_dtype_is_float(b)) {
        return larger(bhi_dtype_is_float(a) ? a : float_of(a),
                      bhi_dtype_is_float(b) ? b : float_of(b));
    }
    if (bhi_dtype_is_signed(a) == bhi_dtype_is_signed(b)) {
        return larger(a, b);
    }
    const enum bhi_dtype with = bhi_dtype_is_signed(a) ? a : b;
    const enum bhi_dtype without = bhi_dtype_is_signed(a) ? b : a;
    if (bhi_dtype_size(with) > bhi_dtype_size(without)) {
        return with;
    }
    return without == BHI_DTYPE_u64 ? BHI_DTYPE_f64 : signed_of(2 * bhi_dtype_size(without));
}

enum bhi_dtype bhi_promote_integer(enum bhi_dtype array) {
    return array == BHI_DTYPE_bool ? BHI_DTYPE_i64 : array;
}

enum bhi_dtype bhi_promote_real(enum bhi_dtype array) {
    return bhi_dtype_is_float(array) ? array : BHI_DTYPE_f64;
}

enum bhi_dtype bhi_promote_function(enum bhi_dtype array) {
    return bhi_dtype_is_float(array) ? array : float_of(array);
}
