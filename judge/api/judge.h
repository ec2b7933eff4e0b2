/* A bh_judge: the task, its court, and who is using them. */
#ifndef BHI_JUDGE_API_JUDGE_H
#define BHI_JUDGE_API_JUDGE_H

#include <bulkhead/judge.h>
#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "judge/check/candidate.h"
#include "judge/check/repeat.h"
#include "judge/check/trial.h"
#include "judge/check/weak.h"
#include "judge/time/measure.h"
#include "tool/device_choice.h"

struct bh_judge {
    uint32_t magic; /* while it lives */
    pid_t pid;      /* of the process that made it */

    pthread_mutex_t lock;   /* guards the next seven, and is held for a few instructions */
    pthread_cond_t changed; /* |users| or |taken| is less */
    unsigned users;         /* calls that run */
    unsigned taken;         /* slots, of |options.parallel|, of calls that have their turn */
    uint64_t turns;         /* that have begun */
    unsigned waiting;       /* calls that wait for all of them */
    bool ready;             /* the reference has run */
    bool cancelled;         /* for good */
    bool ended;             /* the context is destroyed; its address stays the court's (|pin|) */

    /* A turn guards the rest. Those that check candidates only read it. */
    bh_judge_options options; /* without what they point to */
    struct bhi_task task;
    struct bhi_court court;
    struct bhi_candidate baseline;             /* without a file: none; owns all of that */
    struct bhi_weakness weak[BHI_TASK_ARRAYS]; /* found when the reference has run */
    size_t weak_count;
    bool timing; /* |timer| is open */
    struct bhi_timekeeper timer;
    bh_buffer *pin; /* an object of the context: while it lives, no other context has its address */
    char *place;    /* what complaints call the task; owned */
    char *device;   /* as given; owned; NULL: the default */
    char selector[BHI_SELECTOR];
    uint64_t *seeds; /* owned */
    size_t seed_count;
    locale_t c; /* of a turn */
};

bool bhi_judge_is(const bh_judge *judge);

/* What a call does with a candidate, in this order. */
enum { BHI_STEP_CHECK = 1, BHI_STEP_MEASURE = 2, BHI_STEP_REPEAT = 4 };
/* Serves |call|: prepares the judge and does |steps|. |candidate| has a judgement if it is not to be
 * checked. |out_repeated|: what the last step gives; NULL without it. */
bh_status bhi_judge_serve(bh_judge *judge, const char *call, unsigned steps,
                          const bh_judge_candidate *given, struct bhi_candidate *candidate,
                          struct bhi_repeated *out_repeated, bh_detail *detail);

/* Gives the judge other hidden seeds, before it is prepared: those of a judging that goes on.
 * Returns false if memory ran out. */
bool bhi_judge_seed(bh_judge *judge, const uint64_t *seeds, size_t count);

/* -- functions.c ----------------------------------------------------------------------------- */

/* Takes the functions that the options have. Refuses those that the task, which has been read, does not want,
 * and a task that wants others. */
bh_status bhi_judge_functions_take(bh_judge *judge, const bh_judge_options *options,
                                   bh_detail *detail);

/* -- baseline.c ------------------------------------------------------------------------------ */

/* Makes a copy of |file| the judge's baseline; takes over its code. Returns false if memory ran out. */
bool bhi_baseline_keep(bh_judge *judge, const struct bhi_kernel_file *file);
/* Judges it, if there is one, as a candidate is judged: is it CORRECT? */
bh_status bhi_baseline_check(bh_judge *judge, bh_detail *detail);
void bhi_baseline_free(bh_judge *judge);

#endif
