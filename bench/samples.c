#include "samples.h"
#include "base/sort.h"

#include <stdlib.h>

uint64_t bench_quantile(uint64_t *samples, size_t count, unsigned permille) {
    bhi_sort_u64(samples, count);
    size_t rank = (count * permille + 999) / 1000;
    return samples[rank > 0 ? rank - 1 : 0];
}
