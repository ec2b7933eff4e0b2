#include "chaos/check/power.h"

#include <math.h>

static const double missed = 0.05; /* the accepted probability that no wrong operation shows */

double bhi_power_rate(uint64_t count) {
    return count ? -expm1(log(missed) / (double)count) : 1;
}

uint64_t bhi_power_needed(double rate) {
    if (!(rate > 0)) {
        return 0;
    }
    if (rate >= 1) {
        return 1;
    }
    const double needed = ceil(log(missed) / log1p(-rate));
    return needed < 1e18 ? (uint64_t)needed : (uint64_t)1e18;
}
