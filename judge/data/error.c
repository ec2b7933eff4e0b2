#include "judge/data/error.h"

#include <math.h>
#include <string.h>

#include "formats/dtype.h"
#include "judge/data/compare.h"

enum { BLOCK = 512 }; /* bytes that are alike more often than not */

static void raise_one(bh_dtype dtype, uint64_t expected, uint64_t got, bh_judge_error *error) {
    const double a = bhi_element_value(dtype, expected), b = bhi_element_value(dtype, got);
    const double distance = fabs(b - a);
    if (!isfinite(a) || !isfinite(b)) {
        return;
    }
    const uint64_t ulp = bhi_ulp_between(dtype, expected, got);
    error->ulp = ulp > error->ulp ? ulp : error->ulp;
    error->absolute = distance > error->absolute ? distance : error->absolute;
    if (a != 0 && distance > error->relative * fabs(a)) {
        error->relative = distance / fabs(a);
    }
}

void bhi_error_raise(bh_dtype dtype, uint64_t count, const void *expected, const void *got,
                     bh_judge_error *error) {
    const uint32_t size = bhi_dtype_size(dtype), step = BLOCK / size;
    const uint8_t *a = expected, *b = got;
    for (uint64_t i = 0; i < count; i += step) {
        const uint64_t fitting = count - i < step ? count - i : step;
        if (!memcmp(a + i * size, b + i * size, fitting * size)) {
            continue;
        }
        for (uint64_t k = i; k < i + fitting; k++) {
            uint64_t x = 0, y = 0;
            memcpy(&x, a + k * size, size); /* little endian */
            memcpy(&y, b + k * size, size);
            if (x != y) {
                raise_one(dtype, x, y, error);
            }
        }
    }
}
