/* A bh_judge: the task, its court, and who is using them. */
#ifndef BHI_JUDGE_API_JUDGE_H
#define BHI_JUDGE_API_JUDGE_H

#include <bulkhead/judge.h>
#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "judge/check/court.h"
#include "judge/time/measure.h"
#include "tool/device_choice.h"

enum { BHI_JUDGE_SEEDS = 16 };

struct bh_judge {
    uint32_t magic; /* BHI_JUDGE_MAGIC while it lives */
    pid_t pid;      /* of the process that made it */

    pthread_mutex_t lock; /* guards the next four, and is held for a few instructions */
    pthread_cond_t idle;  /* |users| became 0 */
    unsigned users;       /* calls that run */
    bool cancelled;       /* for good */
    bool ended;           /* the context is destroyed; its address stays the court's (|pin|) */

    pthread_mutex_t turn; /* guards the rest: one call at a time uses the court */
    struct bhi_task task;
    struct bhi_court court;
    bool ready;  /* the reference has run */
    bool timed;  /* candidates are timed: */
    bool timing; /* |timer| is open */
    struct bhi_timing_options timing_options;
    struct bhi_timekeeper timer;
    bh_buffer *pin; /* an object of the context: while it lives, no other context has its address */
    char *place;    /* what complaints call the task; owned */
    char *device;   /* as given; owned; NULL: the default */
    char selector[BHI_SELECTOR];
    uint64_t seeds[BHI_JUDGE_SEEDS];
    size_t seed_count;
    locale_t c, before; /* numbers have a point in a turn, whatever the program's locale has */
    bh_log_callback log;
    void *log_user;
};

#define BHI_JUDGE_MAGIC 0x4A756467u

/* Begins a call. BH_OK: bhi_judge_leave ends it. Otherwise fills in |detail|. */
bh_status bhi_judge_enter(bh_judge *judge, const char *call, bh_detail *detail);
void bhi_judge_leave(bh_judge *judge);
/* Around what uses the court. */
void bhi_judge_begin_turn(bh_judge *judge);
void bhi_judge_end_turn(bh_judge *judge);
/* Has bh_judge_cancel been called? */
bool bhi_judge_is_cancelled(bh_judge *judge);
/* Gives the judge its context. Fails if it has been cancelled; then the context is destroyed. */
bool bhi_judge_put_context(bh_judge *judge, bh_context *context);

#endif
