/* A round: each contender runs once, or one batch, on the same fresh inputs, one after the
 * other. */
#ifndef BHI_JUDGE_TIME_ROUND_H
#define BHI_JUDGE_TIME_ROUND_H

#include <stddef.h>
#include <stdint.h>

#include "judge/check/candidate.h"
#include "judge/check/material.h"
#include "judge/check/reference.h"
#include "judge/time/contender.h"

/* In which order those run that take turns. */

/* Which of |count| is at |place| in a round: each round is in ascending or in descending order, by
 * the Thue-Morse sequence. So of two, each is first as often as the other; what changes evenly with
 * time, or with its square, meets both alike (ABBA BAAB); and no load that comes and goes stays in
 * step with it. */
static inline size_t bhi_turn_of(uint64_t round, size_t place, size_t count) {
    return __builtin_parityll(round) ? count - 1 - place : place;
}

enum bhi_racer {
    BHI_RACER_CANDIDATE,
    BHI_RACER_REFERENCE,
    BHI_RACER_TRUSTED, /* the candidate without the guard */
    BHI_RACER_BASE,    /* the empty kernel, on buffers of the candidate's form */
    BHI_RACERS,
};

/* What the rounds of a candidate and a size share. */
struct bhi_race {
    struct bhi_court *court;
    struct bhi_contender *contenders[BHI_RACER_BASE]; /* NULL: it does not run; borrowed */
    struct bhi_base *base;
    struct bhi_reference
        *reference;          /* computes what is expected, where the racer is a baseline; NULL:
                                        the racer is the reference; borrowed */
    struct bhi_flush *flush; /* before each single run; NULL: caches stay warm */
    const struct bhi_trial *trial; /* the size, and the files, of each run */
    bh_judgement *judgement;       /* the candidate's, if it is wrong */
    uint64_t rounds;               /* so far */
    enum bhi_racer running;        /* it failed, if a round failed and |wrong| is false */
    bool wrong;                    /* a run of the candidate was wrong: see |judgement| */
    /* The round does not count: it reads this, which the first of these rounds makes. Nobody learns
     * from it what the rounds that count read. NULL: it has inputs of its own. Borrowed. */
    struct bhi_material *rehearsal;
    struct bhi_material *material; /* the inputs of those that count; borrowed */
    bool on_processor;             /* the driver runs kernels there */
    size_t slots;                  /* for runs: as many as a batch has, at most */
};

/* Runs all racers, in an order that changes (bhi_turn_of). |count| > 1: that many runs, each with
 * buffers and inputs of its own, as one submission, not flushed. |with_base|: the empty kernel
 * runs, too. When all have run, one of |one_of| rounds is drawn, and in it one of the candidate's
 * runs: its outputs are compared with those of the reference. */
bool bhi_round_run(struct bhi_race *race, size_t count, bool with_base, unsigned one_of,
                   struct bhi_clocked out[BHI_RACERS], struct bhi_judge_outcome *outcome);

#endif
