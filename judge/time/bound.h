/* Whether the times that a worker claims can be true. Its claims are of single runs. The host has
 * its own clock, and measures batches of runs that are one submission each: there the way to the
 * worker and back, which no claim contains, counts once. */
#ifndef BHI_JUDGE_TIME_BOUND_H
#define BHI_JUDGE_TIME_BOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_seen {
    double claim_ns;   /* of a single run: what is reported, if it is honest */
    double low_ns;     /* a quarter of the claims is shorter */
    double high_ns;    /* three of four are shorter */
    double group_ns;   /* the shortest median of a group of them */
    uint64_t batch_ns; /* the shortest batch, by the host's clock */
    uint64_t base_ns;  /* the shortest batch of a kernel that does nothing, on buffers like these */
    size_t runs;       /* in a batch */
};

/* A run by the host's clock. 0: the batch was hardly longer than that of the empty kernel, so that
 * nothing is known. */
double bhi_seen_run_ns(const struct bhi_seen *seen);

/* In ascending order of what is concluded. */
enum bhi_honesty {
    BHI_HONEST,
    BHI_UNSURE, /* they cannot be reported, and chance or load may be the cause */
    BHI_FORGED, /* they are shorter than what the host saw */
};

/* |reference| is the yardstick: its claims are true, so what they lack in the host's time is the
 * machine's doing. The more even the quickest of them lack, the more must the candidate's lack
 * before they are called false. A group may lack no more than all claims may, as few groups that
 * lie change the interval of the ratio, and not its middle; the reference's groups are its
 * yardstick. */
enum bhi_honesty bhi_honesty_of(const struct bhi_seen *candidate, const struct bhi_seen *reference);
/* The same, with what was seen of the reference |alone|, too, while no candidate had a worker: a
 * worker that is busy during the reference's batches makes those longer, and so the yardstick
 * shorter. Where |alone| lacks less, that is the yardstick, but not of what is false: the machine
 * may have become busy since. */
enum bhi_honesty bhi_honesty_beside(const struct bhi_seen *candidate,
                                    const struct bhi_seen *reference, const struct bhi_seen *alone);

/* What a single run takes by the host's clock beyond what is claimed of the device's: the way to
 * the worker and back. No claim changes it, so a claim that is too short makes it longer. */

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

/* Compares |count| runs, in |groups|, with as many of the |usual| worker. Not only all
 * of them may not be longer than is allowed, but also those of each group: a lie in one group
 * changes the interval. |alone| is that of the usual worker while no other was there. A worker that
 * delays some runs of its neighbour makes those vary more, so where |alone| varies less, that
 * decides: then claims are BHI_UNSURE, but not false, as the machine may have become busy since.
 * Returns false if memory ran out. */
bool bhi_overhead_judge(const struct bhi_overhead_runs *runs, const struct bhi_overhead_runs *usual,
                        size_t count, size_t groups, const struct bhi_overhead *alone,
                        struct bhi_overhead_verdict *out);

#endif
