/* Whether the times that a worker claims can be true. Its claims are of single runs. The host has
 * its own clock, and measures batches of runs that are one submission each: there the way to the
 * worker and back, which no claim contains, counts once. */
#ifndef BHI_JUDGE_TIME_BOUND_H
#define BHI_JUDGE_TIME_BOUND_H

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

#endif
