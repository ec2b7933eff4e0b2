/* How likely a run was to find an error: the share of wrong operations that it would have found
 * with a probability of 95 %. */
#ifndef BHI_CHAOS_CHECK_POWER_H
#define BHI_CHAOS_CHECK_POWER_H

#include <stdint.h>

/* The smallest share of operations that go wrong, each by itself, which |count| operations show at
 * least once with a probability of 95 %: 1 - 0.05^(1/count). 1 for none. */
double bhi_power_rate(uint64_t count);
/* How many operations it takes to find |rate| with that probability; 0 for a rate of 0. */
uint64_t bhi_power_needed(double rate);

#endif
