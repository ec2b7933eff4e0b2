/* By how much what is right differs from what was expected. */
#ifndef BHI_JUDGE_DATA_ERROR_H
#define BHI_JUDGE_DATA_ERROR_H

#include <bulkhead/array.h>
#include <bulkhead/judgement.h>
#include <stdint.h>

/* Raises |error| to what these elements have; of finite numbers alone. */
void bhi_error_raise(bh_dtype dtype, uint64_t count, const void *expected, const void *got,
                     bh_judge_error *error);

#endif
