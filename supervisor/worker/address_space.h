/* RLIMIT_AS of a worker that has no memory cgroup, and whose device is the processor. The
 * supervisor sets it to:
 *
 *   what it had mapped when it was ready + its memory limit + some room + its buffers
 *
 * RLIMIT_DATA, which the worker sets itself, counts private writable memory only. It limits honest
 * programs, but a compromised worker can evade it. It cannot evade RLIMIT_AS, because filter B
 * allows no call that changes a limit. The limit grows before the worker is told of a buffer. It
 * does not shrink, because the worker unmaps buffers later. */
#ifndef BHI_SUPERVISOR_WORKER_ADDRESS_SPACE_H
#define BHI_SUPERVISOR_WORKER_ADDRESS_SPACE_H

#include "base/proc_place.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct bhi_address_space {
    bool bounded;
    uint64_t base;     /* without buffers */
    uint64_t attached; /* bytes of its buffers once it has read all messages */
    uint64_t most;     /* the largest |attached| so far, for the limit */
};

/* Limits |pid|, which is ready, has run nothing yet and certainly lives, and which /proc shows at
 * |place|. Returns 0, or -errno: then
 * it is not limited. */
int bhi_address_space_bound(struct bhi_address_space *space, pid_t pid,
                            const struct bhi_proc_place *place, uint64_t memory_limit);
/* The worker will be told of |bytes| more, or less. Thread: the context's lock. */
void bhi_address_space_add(struct bhi_address_space *space, pid_t pid, uint64_t bytes);
void bhi_address_space_remove(struct bhi_address_space *space, uint64_t bytes);

#endif
