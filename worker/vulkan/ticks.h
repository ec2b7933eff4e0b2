/* Computes nanoseconds from two timestamps of a device's clock. */
#ifndef BHI_WORKER_VULKAN_TICKS_H
#define BHI_WORKER_VULKAN_TICKS_H

#include <stdint.h>

/* Returns the time from |begin| to |end|, in nanoseconds. They are timestamps with |valid_bits|
 * valid bits, of a clock whose tick takes |period_ns|; the host measured |host_ns| around both. The
 * clock may wrap once in between. The result is at least 1, and at most |host_ns|, because the two
 * clocks may drift apart. Returns 0 if the time is unknown: there is no clock (no valid bits or no
 * period), it may have wrapped more than once in |host_ns|, or it shows more than twice
 * |host_ns|. */
uint64_t bhi_ticks_to_ns(uint64_t begin, uint64_t end, uint32_t valid_bits, double period_ns,
                         uint64_t host_ns);

#endif
