/* The checker says from the history alone whether the promises were kept. It calls nothing of the
 * library, and computes itself what each operation should have written.
 *
 *   lost            each operation has exactly one end, in time; the run gave up on none (E9)
 *   false success   READY means: everything it needed was READY, its output was read back, and is
 *                   bit for bit what it should be (E3, E11)
 *   collateral      POISONED means: it was a fault itself, its worker was hit by one, or something
 *                   that it needed was poisoned, and the verdict's origin and hops lead there (E5,
 *                   E7)
 *   changed         a second look gave another answer (E2)
 *   recovery        after each fault each stream that it hit has a READY result within the bound
 *   leak            descriptors, processes, files, memory and the memory of the device at the end
 *                   are what they were
 *
 * VALID: no promise was broken. INVALID: one was. UNKNOWN: nothing can be said, because the history
 * is incomplete or contradicts itself, no fault was injected, nothing was READY, or the machine
 * stood still for so long that this may explain a passed deadline without a cause or a late end.
 *
 * What it assumes of a complete history: a fault's time was taken just before it was injected;
 * every READY output was read back; after its last fault each stream got work for the bound of
 * recovery, or until something was READY; there are idle samples from the beginning and the end.
 * The history of a host that has kept its own (host.c) is judged by what it has asked, seen and answered.
 * docs/chaos.md has the rules in full.
 */
#ifndef BHI_CHAOS_CHECK_CHECK_H
#define BHI_CHAOS_CHECK_CHECK_H

#include "chaos/check/result.h"

/* False: out of memory. */
bool bhi_chaos_check(const struct bhi_history *history, struct bhi_chaos_result *out_result);

#endif
