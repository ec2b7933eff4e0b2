/* From a device's timestamps to nanoseconds. */
#include "harness.h"
#include "worker/vulkan/timing.h"

#include <math.h>

#define BITS_36 ((UINT64_C(1) << 36) - 1)

static const struct {
    const char *what;
    uint64_t begin, end;
    uint32_t bits;
    double period;
    uint64_t host_ns, ns;
} CASES[] = {
    {"one tick is one nanosecond", 1000, 1750, 64, 1, 1000, 750},
    {"from 0 on", 0, 750, 64, 1, 1000, 750},
    {"large values", UINT64_MAX - 800, UINT64_MAX - 50, 64, 1, 1000, 750},
    {"a tick of 80 ns", 10, 20, 64, 80, 1000, 800},
    {"a tick of a part of one", 100, 400, 64, 0.5, 1000, 150},
    {"a tick of 52.083 ns", 0, 19200000, 36, 52.083332061767578, 2000000000, 999999975},
    {"no tick between them: it was measured, and short", 500, 500, 64, 1, 1000, 1},
    {"less than a nanosecond", 0, 1, 64, 0.25, 1000, 1},
    {"as long as the host saw", 0, 1000, 64, 1, 1000, 1000},
    {"longer: the clocks drift", 0, 1001, 64, 1, 1000, 1000},
    {"twice as long", 0, 2000, 64, 1, 1000, 1000},
    {"more than twice: it is no time", 0, 2001, 64, 1, 1000, 0},
    {"backwards, of 64 bits", 1000, 999, 64, 1, 1000, 0},
    {"backwards, of 36 bits", 1000, 999, 36, 1, 1000, 0},
    {"wrapped, of 64 bits", UINT64_MAX - 99, 400, 64, 1, 1000, 500},
    {"wrapped, of 36 bits", BITS_36 - 99, 400, 36, 1, 1000, 500},
    {"wrapped, of 1 bit", 1, 0, 1, 1000, 900, 900},
    {"bits that are not valid", BITS_36 + 1 + 7, 507, 36, 1, 1000, 500},
    {"bits that are not valid, in the second", 7, (BITS_36 + 1) * 3 + 507, 36, 1, 1000, 500},
    {"it may have wrapped twice", 0, 500, 36, 1, BITS_36, 0},
    {"it cannot have", 0, 500, 36, 1, BITS_36 - 1, 500},
    {"it may have, with longer ticks", 0, 500, 36, 4, BITS_36 * 4, 0},
    {"it cannot have, with longer ticks", 0, 500, 36, 4, BITS_36 * 3, 2000},
    {"ticks times period is more than 64 bits", 0, UINT64_MAX - 1, 64, 1e6, UINT64_MAX / 2, 0},
    {"the longest there is", 0, UINT64_C(1) << 62, 64, 1, UINT64_C(1) << 62, UINT64_C(1) << 62},
    {"a clock that stands", 5, 5, 36, 1, UINT64_MAX, 0},
    {"no valid bits", 0, 500, 0, 1, 1000, 0},
    {"more than 64", 0, 500, 65, 1, 1000, 500},
    {"no period", 0, 500, 64, 0, 1000, 0},
    {"a negative period", 0, 500, 64, -1, 1000, 0},
    {"a period that is no number", 0, 500, 64, NAN, 1000, 0},
    {"an infinite period", 0, 500, 64, INFINITY, 1000, 0},
    {"no time has passed for the host", 0, 500, 64, 1, 0, 0},
};

TEST(the_table) {
    for (size_t i = 0; i < BHT_COUNT(CASES); i++) {
        const uint64_t ns = bhi_ticks_to_ns(CASES[i].begin, CASES[i].end, CASES[i].bits,
                                            CASES[i].period, CASES[i].host_ns);
        if (ns != CASES[i].ns) {
            BHT_FAIL("%s: %llu, must be %llu", CASES[i].what, (unsigned long long)ns,
                     (unsigned long long)CASES[i].ns);
        }
    }
}
