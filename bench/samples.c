#include "samples.h"

#include <stdlib.h>

static int compare(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

uint64_t bench_quantile(uint64_t *samples, size_t count, unsigned permille) {
    qsort(samples, count, sizeof *samples, compare);
    size_t rank = (count * permille + 999) / 1000;
    return samples[rank > 0 ? rank - 1 : 0];
}
