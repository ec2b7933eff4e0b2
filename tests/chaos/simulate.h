/* A supervisor that is only simulated: streams, workers that die, poison that spreads. It writes
 * histories as a run does, all of them valid, and all different. It knows nothing of the checker.
 */
#ifndef BULKHEAD_TEST_CHAOS_SIMULATE_H
#define BULKHEAD_TEST_CHAOS_SIMULATE_H

#include "chaos/history/history.h"

struct simulated {
    uint64_t operations, ready, poisoned, refused;
};

uint64_t sim_random(uint64_t *state);
/* Freed by the caller (bhi_history_free). */
void simulate(uint64_t seed, struct bhi_history *out_history, struct simulated *out_tally);

#endif
