/* What a single run takes by the host's clock beyond what is claimed of the device's: the way to
 * the worker and back. No claim changes it, so a claim that is too short makes it longer. */
#ifndef BHI_JUDGE_TIME_OVERHEAD_H
#define BHI_JUDGE_TIME_OVERHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_overhead {
    size_t count;
    double median_ns;
    double spread_ns; /* from the tenth of them that is shortest to that which is longest */
    double host_ns;   /* median of the host's times */
};

/* Looks at |count| runs, at least one: |hosts| by the host's clock, |claims| by the worker. Returns
 * false if memory ran out. */
bool bhi_overhead_of(const uint64_t *hosts, const uint64_t *claims, size_t count,
                     struct bhi_overhead *out);
/* Is it surely longer than |usual|, that of a worker whose claims are true? By more than 5 % of its
 * runs, than 0.1 ms, and than twice the spread of the usual one: so much is neither the machine's
 * noise, nor that a processor wakes up later from a longer sleep. Of fewer than 20 runs nothing is
 * sure. */
bool bhi_overhead_exceeds(const struct bhi_overhead *overhead, const struct bhi_overhead *usual);

#endif
