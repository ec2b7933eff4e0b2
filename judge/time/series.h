/* A series of times: candidate and reference in turns, round after round. */
#ifndef BHI_JUDGE_TIME_SERIES_H
#define BHI_JUDGE_TIME_SERIES_H

#include "judge/time/round.h"

struct bhi_series {
    struct bhi_race race;
    size_t count;                      /* rounds */
    uint64_t *times[BHI_RACER_BASE];   /* |count| each: claims of the device's time, or, without its
                                         clock, the host's times of a run in a batch; owned */
    uint64_t *hosts[BHI_RACER_BASE];   /* the host's time of each claim; owned */
    size_t batch;                      /* runs in a batch, at most */
    bool device;                       /* the workers claim times of the device */
    bool unclaimed;                    /* the candidate's does not, and the reference's does */
    struct bhi_judge_outcome *outcome; /* borrowed */
};

/* Takes the race, and what fails. Runs once: that compiles, and shows whether the device has a
 * clock. The caller frees the series, also after a failure. */
bool bhi_series_begin(const struct bhi_race *race, size_t count, struct bhi_judge_outcome *outcome,
                      struct bhi_series *out);
/* Runs once more: after contenders were opened again. */
bool bhi_series_run_first(struct bhi_series *series);
/* Takes |count| times of each, the first of the series. */
bool bhi_series_take(struct bhi_series *series, size_t count);
/* 0: it did not run, or memory ran out. */
double bhi_series_median(const struct bhi_series *series, enum bhi_racer racer);
void bhi_series_free(struct bhi_series *series);

#endif
