/* The clocks of the command-line program, in nanoseconds. */
#ifndef BHI_TOOL_CLOCK_H
#define BHI_TOOL_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t bhi_clock_read(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* CLOCK_MONOTONIC, for waits and measurements. */
static inline uint64_t bhi_clock_ns(void) {
    return bhi_clock_read(CLOCK_MONOTONIC);
}

/* CLOCK_REALTIME, for dates. */
static inline uint64_t bhi_clock_calendar_ns(void) {
    return bhi_clock_read(CLOCK_REALTIME);
}

/* Converts a point in time for pthread_cond_timedwait and similar calls. */
static inline struct timespec bhi_clock_until(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
}

#endif
