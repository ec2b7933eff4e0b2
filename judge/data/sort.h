/* Sorts the elements of an array. */
#ifndef BHI_JUDGE_DATA_SORT_H
#define BHI_JUDGE_DATA_SORT_H

#include <bulkhead/array.h>
#include <stdbool.h>
#include <stdint.h>

/* In ascending order, -0 before 0, NaNs at the ends; or |reversed|. Needs no memory. */
void bhi_sort(bh_dtype dtype, bool reversed, uint64_t count, void *elements);

#endif
