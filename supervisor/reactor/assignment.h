/* Worker assignment: which stream gets which worker. Reactor thread. */
#ifndef BHI_SUPERVISOR_REACTOR_ASSIGNMENT_H
#define BHI_SUPERVISOR_REACTOR_ASSIGNMENT_H

#include "supervisor/context/context.h"
#include "supervisor/worker/zygote.h"

/* The part of bhi_assignment_turn that streams wait for: nothing is started for later. */
void bhi_assignment_serve(bh_context *context);
/* Binds spares, starts zygotes and workers where streams (or the pool of spares) want them.
 * Returns when to look again at the latest. */
uint64_t bhi_assignment_turn(bh_context *context);
/* A zygote died before it was ready: passes the reason to its streams. */
void bhi_assignment_zygote_failed(struct bhi_zygote *zygote);

#endif
