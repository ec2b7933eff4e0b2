/* How likely a run was to find an error: the share of wrong operations that it would have found
 * with a probability of 95 %. */
#ifndef BHI_CHAOS_CHECK_POWER_H
#define BHI_CHAOS_CHECK_POWER_H

#include <stdint.h>

/* Returns the smallest rate of independently wrong operations of which |count| operations contain
 * at least one with a probability of 95 %: 1 - 0.05^(1/count). Returns 1 for a |count| of 0. */
double bhi_power_rate(uint64_t count);
/* Returns how many operations are needed to find |rate| with that probability; 0 for a rate of
 * 0. */
uint64_t bhi_power_needed(double rate);

#endif
