/* How many times as long everything may take: $BULKHEAD_TEST_SLOWNESS, 1 to 100 (`scripts/test
 * --under-load` sets it). For programs without the harness, whose bht_slowness() is the same. */
#ifndef BULKHEAD_TEST_UNIT_SLOWNESS_H
#define BULKHEAD_TEST_UNIT_SLOWNESS_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t slowness(void) {
    const char *value = getenv("BULKHEAD_TEST_SLOWNESS");
    const unsigned long times = value ? strtoul(value, NULL, 10) : 1;
    return times < 1 ? 1 : times > 100 ? 100 : times;
}

#endif
