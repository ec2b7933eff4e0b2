/* A disk that loses power, or fails: one shim under all calls that change files, of the product, of
 * this program, and of libraries such as SQLite. It knows what fsync has made durable: the data of a
 * file, and apart from it the names in a folder. A test runs something, then asks for what a power
 * loss would have left after each of its steps, and opens that with the product.
 *
 * What is not durable may survive or not, each part for itself; |enum power_outcome| is a choice of
 * what file systems are allowed to do.
 *
 * Log and counts are shared with children of this process, which may be killed. Files that are written
 * through a mapping, or by a stream of libc's, are not seen. */
#ifndef BHT_POWER_H
#define BHT_POWER_H

#include <stdbool.h>
#include <stddef.h>

enum power_mode {
    POWER_GOOD,
    POWER_ONCE, /* the step fails with |error| */
    POWER_FROM, /* and so do all after it */
    POWER_KILL, /* SIGKILL, before it is done */
};

/* A step is one call that changes a file, a folder, or what is durable. */
struct power {
    enum power_mode mode;
    int error;        /* an errno */
    const char *name; /* only what has this name counts; NULL: all */
    bool only_syncs;  /* count */
    long at;          /* from 1 */
    long seen;        /* steps until now, of those that count */
    long syncs;       /* of all */
    bool hit;
};
extern struct power *power;

enum power_outcome {
    POWER_LOST,  /* all that is not durable */
    POWER_NAMES, /* the names have survived, the data has not */
    POWER_DATA,  /* the other way round */
    POWER_FIRST, /* of the names in a folder the last change is lost, no more */
    POWER_TORN,  /* the end of the last write of each file is lost, no more */
    POWER_LATE,  /* the first half of what was written to each file is lost, no more */
    POWER_MIXED, /* of the folders and files every other one loses all, and the rest nothing */
    POWER_MIXED_OTHERWISE,
    POWER_KEPT, /* nothing is lost, as when a process is killed */
    POWER_OUTCOMES,
};
const char *power_outcome_name(enum power_outcome outcome);

/* Removes all that is in the folder. */
void power_empty(const char *folder);
/* From now on all below the folder is watched; what it has is durable. Forgets what was before. */
void power_begin(const char *root);
/* Nothing more is logged, and nothing fails. */
void power_end(void);
/* Notes what somebody outside has been told. */
void power_say(const char *text);

/* Once it has ended: how many steps there are (and how often something was said), and what was said
 * last before the first |steps| were over; "": nothing. */
long power_steps(void);
/* After how many steps the |number|th sync comes, or the end if there is none. */
long power_before_sync(long number);
const char *power_said(long steps);
/* Makes the root what is left of it when the power is lost after |steps|, at least as many as before.
 * False: that, with the same said, was there already. */
bool power_lose(long steps, enum power_outcome outcome);
/* Calls |check| for each outcome after |steps| that differs from those before, with what was said. A
 * failure in it names the outcome. */
void power_lose_after(long steps, void (*check)(const char *said));
/* The same after each step; where a file is written several times in a row, after the last. */
void power_lose_everywhere(void (*check)(const char *said));

#endif
