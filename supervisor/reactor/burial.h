/* What follows from a worker's life (core/life.h): what a deadline of it asks for, a stream that
 * goes on without its dying worker, the burial. Reactor thread, no lock held, unless it says so. */
#ifndef BHI_SUPERVISOR_REACTOR_BURIAL_H
#define BHI_SUPERVISOR_REACTOR_BURIAL_H

#include "supervisor/worker/worker_proc.h"

/* Why a worker died, as a line for the host's log. */
struct bhi_obituary {
    bh_log_level level;
    char line[640]; /* empty: it died as it was told */
};

/* The worker is confirmed dead: finds what killed it, ends or requeues its submissions
 * (bhi_core_worker_died), and takes it out of the context. The caller drops the context's
 * reference. Lock held. */
void bhi_worker_died(struct bhi_worker *worker, struct bhi_obituary *obituary);
/* The worker's pidfd has fired. */
void bhi_burial_exit(struct bhi_worker *worker);
/* Does for each worker what is due, and buries those that are confirmed dead. Returns when to call
 * it again. All events of the last epoll_pwait2 must have been handled, so that none points at what
 * is freed here. */
uint64_t bhi_burial_turn(bh_context *context);
/* Takes each worker that is dying, and may leave, from its stream. The stream goes on without it,
 * before its death is confirmed, if nothing that it was told to do is under way (decision 4): a
 * GPU's driver takes 40 ms and more to release a dead process. Until the burial the accounts stay
 * as they are: what the worker has been given counts as given to a living worker. Returns true if
 * there was one. */
bool bhi_leave_turn(bh_context *context);
/* Buries the zygotes that are gone and have no workers left. */
void bhi_burial_zygotes(bh_context *context);
/* Processes have not ended in time, although they were killed: buries all as they are. Their
 * submissions end nevertheless (E9). Only the kernel can end such a process. */
void bhi_burial_give_up(bh_context *context);

#endif
