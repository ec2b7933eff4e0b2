/* The clock that waits and measurements of the command-line program go by. */
#ifndef BHI_CLI_CLOCK_H
#define BHI_CLI_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t bhi_clock_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#endif
