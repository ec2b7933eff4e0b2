/* Starting a worker: its parts are made here, its zygote forks it. Reactor thread. */
#ifndef BHI_SUPERVISOR_REACTOR_SPAWN_H
#define BHI_SUPERVISOR_REACTOR_SPAWN_H

#include "supervisor/worker/worker_proc.h"

/* Sends a spawn request, and adds the worker to context->workers. Returns NULL, with |detail|, on
 * failure. No lock. */
struct bhi_worker *bhi_worker_spawn(bh_context *context, struct bhi_zygote *zygote,
                                    const char *device, uint32_t device_index,
                                    uint64_t memory_limit, uint32_t processor, uint32_t nice,
                                    enum bhi_worker_kind kind, bh_detail *detail);

#endif
