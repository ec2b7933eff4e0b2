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
#include "judge/journal/journal.h"
#include "judge/report/report.h"
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

    char *state; /* the folder of |journal|; owned; NULL: nothing is recorded */
    struct bhi_judge_journal journal;
    pthread_mutex_t recording; /* one record at a time */
    char *html;                /* a page that can be written; owned; NULL: none */
};

bool bhi_judge_is(const bh_judge *judge);

/* What a call does with a candidate, in this order. */
enum { BHI_STEP_CHECK = 1, BHI_STEP_MEASURE = 2, BHI_STEP_REPEAT = 4 };
/* Serves |call|: prepares the judge and does |steps|. |candidate| has a judgement if it is not to be
 * checked. |out_repeated|: what the last step gives; NULL without it. */
bh_status bhi_judge_serve(bh_judge *judge, const char *call, unsigned steps,
                          const bh_judge_candidate *given, struct bhi_candidate *candidate,
                          struct bhi_repeated *out_repeated, bh_detail *detail);

/* Begins a call. BH_OK: bhi_judge_leave ends it. */
bh_status bhi_judge_enter(bh_judge *judge, const char *call, bh_detail *detail);
void bhi_judge_leave(bh_judge *judge);
/* Has the reference run? */
bool bhi_judge_is_ready(bh_judge *judge);

/* The state folder. Each of these does nothing if the judge has none. */

/* Opens it, when the judge has its seeds: it takes those of a judging that goes on. */
bh_status bhi_judge_open_record(bh_judge *judge, const bh_judge_options *options,
                                bh_detail *detail);
/* When the reference has run. */
bh_status bhi_judge_begin_record(bh_judge *judge, bh_detail *detail);
/* Takes what is recorded of a candidate with this content. Returns false if nothing is. */
bool bhi_judge_find_record(bh_judge *judge, struct bhi_candidate *candidate);
bh_status bhi_judge_record(bh_judge *judge, const struct bhi_candidate *candidate,
                           bh_detail *detail);
void bhi_judge_close_record(bh_judge *judge);

/* Checks that the page can be written. */
bh_status bhi_judge_open_page(bh_judge *judge, const bh_judge_options *options, bh_detail *detail);
/* What reports say of a judge that is prepared and its candidates; all is borrowed. */
void bhi_judge_tell(const bh_judge *judge, const struct bhi_candidate *candidates, size_t count,
                    struct bhi_judge_report *out);

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
