#include "templates/promote.h"

bool bhi_dtype_is_float(bh_dtype dtype) {
    return dtype == BH_DTYPE_F16 || dtype == BH_DTYPE_F32 || dtype == BH_DTYPE_F64;
}

bool bhi_dtype_is_signed(bh_dtype dtype) {
    return dtype == BH_DTYPE_I8 || dtype == BH_DTYPE_I16 || dtype == BH_DTYPE_I32 ||
           dtype == BH_DTYPE_I64;
}

bool bhi_dtype_is_integer(bh_dtype dtype) {
    return !bhi_dtype_is_float(dtype) && dtype != BH_DTYPE_BOOL;
}

static bh_dtype larger(bh_dtype a, bh_dtype b) {
    return bhi_dtype_size(a) < bhi_dtype_size(b) ? b : a;
}

static bh_dtype signed_of(uint32_t bytes) {
    return bytes == 2 ? BH_DTYPE_I16 : bytes == 4 ? BH_DTYPE_I32 : BH_DTYPE_I64;
}

/* The smallest float type that holds all values of an integer type of up to 16 bits (f16, f32); f64
 * for larger ones. */
static bh_dtype float_of(bh_dtype integer) {
    const uint32_t bytes = bhi_dtype_size(integer);
    return bytes == 1 ? BH_DTYPE_F16 : bytes == 2 ? BH_DTYPE_F32 : BH_DTYPE_F64;
}

bh_dtype bhi_promote(bh_dtype a, bh_dtype b) {
    if (a == b || b == BH_DTYPE_BOOL) {
        return a;
    }
    if (a == BH_DTYPE_BOOL) {
        return b;
    }
    if (bhi_dtype_is_float(a) || bhi_dtype_is_float(b)) {
        return larger(bhi_dtype_is_float(a) ? a : float_of(a),
                      bhi_dtype_is_float(b) ? b : float_of(b));
    }
    if (bhi_dtype_is_signed(a) == bhi_dtype_is_signed(b)) {
        return larger(a, b);
    }
    const bh_dtype with = bhi_dtype_is_signed(a) ? a : b;
    const bh_dtype without = bhi_dtype_is_signed(a) ? b : a;
    if (bhi_dtype_size(with) > bhi_dtype_size(without)) {
        return with;
    }
    return without == BH_DTYPE_U64 ? BH_DTYPE_F64 : signed_of(2 * bhi_dtype_size(without));
}

bh_dtype bhi_promote_integer(bh_dtype array) {
    return array == BH_DTYPE_BOOL ? BH_DTYPE_I64 : array;
}

bh_dtype bhi_promote_real(bh_dtype array) {
    return bhi_dtype_is_float(array) ? array : BH_DTYPE_F64;
}

bh_dtype bhi_promote_function(bh_dtype array) {
    return bhi_dtype_is_float(array) ? array : float_of(array);
}
