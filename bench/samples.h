/* Order statistics. */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/* The |permille|-th quantile (nearest rank). Sorts |samples|; |count| is at least 1. */
uint64_t bench_quantile(uint64_t *samples, size_t count, unsigned permille);

#endif
