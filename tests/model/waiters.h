/* Those who wait for the end of an event without following its worker, several of the same one,
 * too: the core's own list of them (core/event.h), as the supervisor uses it. */
#ifndef MODEL_WAITERS_H
#define MODEL_WAITERS_H

#include "core/event.h"
#include <stdint.h>

#define WAITERS 64

struct world;

struct waiter {
    struct bhi_observer observer;
    struct world *world;
    int work;
    bool notified, left; /* left: it has given up */
};

/* One more waits for |work|; if that has ended it sees so at once. */
bool waiters_join(struct world *world, int work);
/* One of those who have not given up does. */
bool waiters_leave(struct world *world, int work, uint32_t arg);
/* |work| has ended: all who wait for it are told, each once, and see the same. */
void waiters_tell(struct world *world, int work);
/* Between two steps: somebody is to notice the end of what is waited for. */
void waiters_check(struct world *world);

#endif
