/* What tests do with the test build of libbulkhead: make its Nth call of a kind fail, and act at
 * its named steps (seam.c). One fault and one hook at a time. */
#ifndef BHT_SEAM_H
#define BHT_SEAM_H

#include <stdbool.h>
#include <stddef.h>

enum bht_side {
    BHT_THIS_THREAD,   /* calls made by the thread that arms it: inside a call of the API */
    BHT_OTHER_THREADS, /* the reactor's */
};

struct bht_fault {
    int kind; /* enum bht_kind */
    enum bht_side side;
    unsigned nth; /* from 1, counted from now on */
    bool lasting; /* all later ones fail as well, until it is disarmed */
    int error;    /* errno; 0: the usual one of that call */
};

void bht_arm(struct bht_fault fault);
bool bht_disarm(void);       /* has it fired? */
bool bht_fired(void);        /* has it fired, since it was armed? */
const char *bht_where(void); /* "malloc at supervisor/stream/stream.c:90", the first that fired */
const char *bht_kind_name(int kind);

/* |hook| is called once, the |nth| time that the step is passed, by the thread that passes it.
 * NULL: none. */
typedef void bht_hook(void *object);
void bht_at_step(const char *name, unsigned nth, bht_hook *hook);
unsigned bht_steps_passed(void); /* how often the step was passed since then */

/* From now on the first |bytes| of every hash of a kernel are the same, whatever is hashed. */
void bht_collide(size_t bytes);

#endif
