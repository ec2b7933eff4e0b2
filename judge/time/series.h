/* A series of times: candidate and reference in turns, round after round, in groups (group.h): a
 * worker is fast or slow as long as it lives, so each group has fresh ones. */
#ifndef BHI_JUDGE_TIME_SERIES_H
#define BHI_JUDGE_TIME_SERIES_H

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
/* The median of all times, that of the first group, and the time than which |quarter| of four are
 * shorter or as long, 1 or 3. 0: it did not run, or memory ran out. */
double bhi_series_median(const struct bhi_series *series, enum bhi_racer racer);
double bhi_series_first_median(const struct bhi_series *series, enum bhi_racer racer);
double bhi_series_quarter(const struct bhi_series *series, enum bhi_racer racer, int quarter);
/* The shortest median of a group. 0: as above. */
double bhi_series_least_group(const struct bhi_series *series, enum bhi_racer racer);
void bhi_series_free(struct bhi_series *series);

#endif
