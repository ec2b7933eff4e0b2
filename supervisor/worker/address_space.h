/* How much address space a worker has that has no memory cgroup, and whose device is its own
 * processor: RLIMIT_AS, set from here.
 *
 *   what it had mapped when it was ready + its memory limit + some room + its buffers
 *
 * RLIMIT_DATA, which the worker sets itself, counts private writable memory only: the limit for
 * honest programs. A worker that was taken over gets around that one; not around this one, since
 * filter B leaves it no call that changes a limit. Grows as buffers are attached, before the worker
 * is told of them, and does not shrink: the worker unmaps them later. */
#ifndef BHI_SUPERVISOR_WORKER_ADDRESS_SPACE_H
#define BHI_SUPERVISOR_WORKER_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct bhi_address_space {
    bool bounded;
    uint64_t base;     /* without buffers */
    uint64_t attached; /* bytes of the buffers that it has, or will have when it has heard of all */
    uint64_t most;     /* that it ever was: what the limit is made of */
};

/* |pid| is ready, and has run nothing yet. The caller knows that it lives. Returns 0, or -errno:
 * then it is not bounded. */
int bhi_address_space_bound(struct bhi_address_space *space, pid_t pid, uint64_t memory_limit);
/* The worker will be told of |bytes| more, or less. Thread: the context's lock. */
void bhi_address_space_add(struct bhi_address_space *space, pid_t pid, uint64_t bytes);
void bhi_address_space_remove(struct bhi_address_space *space, uint64_t bytes);

#endif
