/* The kernels of a batch: each is made once, however many jobs use it. All calls with the runner's
 * lock, but where it says so. */
#ifndef BHI_BATCH_RUNNER_KERNEL_CACHE_H
#define BHI_BATCH_RUNNER_KERNEL_CACHE_H

#include <stdint.h>

#include "batch/runner/state.h"
#include "request/types.h"

enum bhi_kernel_entry_state { BHI_KERNEL_MAKING, BHI_KERNEL_MADE, BHI_KERNEL_FAILED };

struct bhi_kernel_entry {
    struct bhi_list node; /* runner->kernels */
    uint8_t key[32];
    enum bhi_kernel_entry_state state;
    bool forgotten; /* out of the list, freed with its last user */
    size_t users;
    uint64_t used;
    bh_kernel *kernel;
    struct bhi_kernel_types *types; /* owned; NULL: any types will do, or it is no valid kernel */
    bh_status status;               /* of FAILED */
    int sys_errno;
    char message[512];
    struct bhi_work_list parked;
};

/* NULL: there is none. */
struct bhi_kernel_entry *bhi_kernel_cache_find(const struct bhi_runner *runner,
                                               const uint8_t key[32]);
/* One that is being made; one that nobody uses makes room. NULL: out of memory. */
struct bhi_kernel_entry *bhi_kernel_cache_add(struct bhi_runner *runner, const uint8_t key[32]);
/* Nobody finds it any more. */
void bhi_kernel_cache_forget(struct bhi_runner *runner, struct bhi_kernel_entry *entry);
/* Without the lock. */
void bhi_kernel_entry_drop(struct bhi_runner *runner, struct bhi_kernel_entry *entry);
/* Nobody uses any of them, and there are no threads. */
void bhi_kernels_free(struct bhi_runner *runner);

#endif
