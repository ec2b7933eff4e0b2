#include "worker/vulkan/ticks.h"

#include <stdbool.h>

uint64_t bhi_ticks_to_ns(uint64_t begin, uint64_t end, uint32_t valid_bits, double period_ns,
                         uint64_t host_ns) {
    const bool has_clock = valid_bits > 0 && period_ns > 0; /* a NaN compares false */
    if (!has_clock || host_ns == 0) {
        return 0;
    }
    const uint64_t mask = valid_bits >= 64 ? UINT64_MAX : (UINT64_C(1) << valid_bits) - 1;
    if ((double)host_ns >= (double)mask * period_ns) {
        return 0;
    }
    const double ns = (double)((end - begin) & mask) * period_ns;
    /* Checked before the conversion, which is undefined for a value that a uint64_t cannot hold. */
    if (ns > 2 * (double)host_ns) {
        return 0;
    }
    if (ns >= (double)host_ns) {
        return host_ns;
    }
    return ns < 1 ? 1 : (uint64_t)ns;
}
