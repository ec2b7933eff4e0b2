/* What a single run takes by the host's clock beyond what is claimed of the device's: the way to
 * the worker and back. No claim changes it, so a claim that is too short makes it longer. */
#ifndef BHI_JUDGE_TIME_OVERHEAD_H
#define BHI_JUDGE_TIME_OVERHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge/time/bound.h"

struct bhi_overhead {
    size_t count;
    double low_ns; /* a quarter of them is shorter */
    double median_ns;
    double spread_ns; /* from the tenth of them that is shortest to that which is longest */
    double host_ns;   /* median of the host's times */
};

/* Looks at |count| runs, at least one: |hosts| by the host's clock, |claims| by the worker. Returns
 * false if memory ran out. */
bool bhi_overhead_of(const uint64_t *hosts, const uint64_t *claims, size_t count,
                     struct bhi_overhead *out);
/* By how much it may be longer than |usual|, that of a worker whose claims are true: by 5 % of a
 * run, 0.1 ms, or twice the spread of the usual one, whatever is most; so much is the machine's
 * noise, or that a processor wakes up later from a longer sleep. A few runs may be alike by
 * chance: of n < 20 runs it is 40 / n times the spread. */
double bhi_overhead_allowed(const struct bhi_overhead *overhead, const struct bhi_overhead *usual);
/* Is it longer than that? */
bool bhi_overhead_exceeds(const struct bhi_overhead *overhead, const struct bhi_overhead *usual);
/* BHI_FORGED: three of four runs are longer than that; BHI_UNSURE: half of them are. */
enum bhi_honesty bhi_overhead_honesty(const struct bhi_overhead *overhead,
                                      const struct bhi_overhead *usual);

/* Runs of one contender. */
struct bhi_overhead_runs {
    const uint64_t *hosts, *claims;
};

struct bhi_overhead_verdict {
    enum bhi_honesty honesty;
    bool only_alone; /* BHI_UNSURE, and only because of what varies little alone */
    double run_ns;   /* a run as the host saw it */
};

/* Compares |count| runs, in |groups| (group.h), with as many of the |usual| worker. Not only all
 * of them may not be longer than is allowed, but also those of each group: a lie in one group
 * changes the interval. |alone| is that of the usual worker while no other was there. A worker that
 * delays some runs of its neighbour makes those vary more, so where |alone| varies less, that
 * decides: then claims are BHI_UNSURE, but not false, as the machine may have become busy since.
 * Returns false if memory ran out. */
bool bhi_overhead_judge(const struct bhi_overhead_runs *runs, const struct bhi_overhead_runs *usual,
                        size_t count, size_t groups, const struct bhi_overhead *alone,
                        struct bhi_overhead_verdict *out);

#endif
