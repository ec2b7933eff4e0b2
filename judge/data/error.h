/* By how much what is right differs from what was expected. */
#ifndef BHI_JUDGE_DATA_ERROR_H
#define BHI_JUDGE_DATA_ERROR_H

#include <bulkhead/array.h>
#include <stdint.h>

/* The largest of all elements, of finite numbers alone. */
struct bhi_largest {
    double absolute;
    double relative; /* to what was expected, where that is not 0 */
    uint64_t ulp;    /* as bhi_ulp_between counts */
};

/* Raises |largest| to what these elements have. */
void bhi_largest_raise(bh_dtype dtype, uint64_t count, const void *expected, const void *got,
                       struct bhi_largest *largest);

#endif
