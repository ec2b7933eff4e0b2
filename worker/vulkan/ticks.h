/* A device's clock: from two of its timestamps to nanoseconds. */
#ifndef BHI_WORKER_VULKAN_TICKS_H
#define BHI_WORKER_VULKAN_TICKS_H

#include <stdint.h>

/* The time from |begin| to |end|, timestamps with |valid_bits| valid bits each, of a clock that
 * takes |period_ns| for a tick; the host saw |host_ns| pass around both. The clock may wrap once in
 * between. Returns 1 at least, and |host_ns| at most: the two clocks may drift apart.
 * 0: not known. There is no clock (no valid bits, no period), or it may have wrapped more than once
 * in |host_ns|, or it says more than twice |host_ns|. */
uint64_t bhi_ticks_to_ns(uint64_t begin, uint64_t end, uint32_t valid_bits, double period_ns,
                         uint64_t host_ns);

#endif
