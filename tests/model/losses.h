/* A stream loses its worker, or cannot get one: whether the core keeps to the restart budget. */
#ifndef MODEL_LOSSES_H
#define MODEL_LOSSES_H

#include "world.h"

#define UNAVAILABLE oracle_status_bit(BH_UNAVAILABLE)
#define NO_DEVICE   oracle_status_bit(BH_NO_DEVICE)

/* Around a call that may make a stream UNAVAILABLE. */
void losses_begin(struct world *world, int index, uint64_t statuses);
void losses_end(struct world *world, int index);
/* The first worker that is lost for nothing is replaced at once, the next ones with a pause that
 * doubles, from 10 ms to 1 s; a good one in between ends that. */
void losses_check_backoff(struct world *world, int index, bool good, bool productive);
/* May the stream give up? Must it (case 50)? |starting|: the worker had not been ready. */
void losses_check_budget(struct world *world, int index, bool productive, bool starting);

#endif
