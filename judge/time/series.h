/* A series of times: candidate and reference in turns, round after round, in groups: a
 * worker is fast or slow as long as it lives, so each group has fresh ones. */
#ifndef BHI_JUDGE_TIME_SERIES_H
#define BHI_JUDGE_TIME_SERIES_H

#include "judge/time/bound.h"
#include "judge/time/round.h"

/* How long a run took, as the host saw it: by its clock, or the processor time of a worker on one
 * processor. What others did there meanwhile is not in that. */
uint64_t bhi_seen_ns(const struct bhi_clocked *clocked);

struct bhi_series {
    struct bhi_race race;
    size_t count;                      /* rounds */
    size_t groups;                     /* of rounds */
    uint64_t *times[BHI_RACER_BASE];   /* |count| each: claims of the device's time, or, without its
                                         clock, the host's times of a run in a batch; owned */
    uint64_t *hosts[BHI_RACER_BASE];   /* what the host saw of each claim; owned */
    size_t batch;                      /* runs in a batch, at most */
    bool device;                       /* the workers claim times of the device */
    bool unclaimed;                    /* the candidate's does not, and the reference's does */
    struct bhi_material rehearsal;     /* what rounds read that do not count */
    struct bhi_material material;      /* what the others read */
    struct bhi_judge_outcome *outcome; /* borrowed */
};

/* Takes the race, and what fails. Runs once: that compiles, and shows whether the device has a
 * clock. The caller frees the series, also after a failure. */
bool bhi_series_begin(const struct bhi_race *race, size_t count, struct bhi_judge_outcome *outcome,
                      struct bhi_series *out);
/* Takes |count| times of each, the first of the series, which are taken again later: a warm-up. */
bool bhi_series_warm(struct bhi_series *series, size_t count);
/* Gives a contender, if there is one, a fresh worker. */
bool bhi_series_renew_one(struct bhi_series *series, enum bhi_racer racer);
/* Gives each contender a fresh worker, and lets them run some times: before a group is taken. */
bool bhi_series_renew(struct bhi_series *series, size_t group);
/* Takes the times of a group. */
bool bhi_series_take(struct bhi_series *series, size_t group);
/* The median of all times. 0: it did not run, or memory ran out. */
double bhi_series_median(const struct bhi_series *series, enum bhi_racer racer);
void bhi_series_free(struct bhi_series *series);

/* What the host sees of batches: many runs that are one submission. */

struct bhi_batches {
    size_t length;              /* runs in each */
    uint64_t least[BHI_RACERS]; /* the shortest of each racer */
};

/* How many runs the host measures at once, by the reference's claims in the first group. */
size_t bhi_batches_length(const struct bhi_series *series);
/* Batches of |length| runs; none yet. */
void bhi_batches_begin(size_t length, struct bhi_batches *out);
/* Measures |count| more. */
bool bhi_batches_take(struct bhi_batches *batches, struct bhi_series *series, size_t count);
/* What was seen of a racer, and what it claims. What a candidate claims is what is reported of it:
 * its median, or what |ratio| says, if that is less. 0: no ratio is known. */
struct bhi_seen bhi_batches_seen(const struct bhi_batches *batches, const struct bhi_series *series,
                                 enum bhi_racer racer, double ratio);

#endif
