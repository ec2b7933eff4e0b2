/* The kernels of a batch: each is made once, however many jobs use it. Call all functions with the
 * runner's lock, unless they say otherwise. */
#ifndef BHI_BATCH_RUNNER_KERNEL_CACHE_H
#define BHI_BATCH_RUNNER_KERNEL_CACHE_H

#include <stdint.h>

#include "batch/runner/state.h"
#include "request/language.h"
#include "request/types.h"

enum bhi_kernel_entry_state { BHI_KERNEL_MAKING, BHI_KERNEL_MADE, BHI_KERNEL_FAILED };

struct bhi_kernel_entry {
    struct bhi_list node; /* in runner->kernels */
    uint8_t key[32];
    enum bhi_kernel_entry_state state;
    enum bhi_language language; /* UNKNOWN: the file has not been read */
    bool forgotten;             /* not in the list any more; freed with its last user */
    size_t users;
    uint64_t used;
    bh_kernel *kernel;
    struct bhi_kernel_types *types; /* owned; NULL: it was not inspected */
    bh_status status;               /* if FAILED */
    int sys_errno;
    bh_reason reason;
    int signal; /* that killed the compiler from outside; 0: none */
    char message[512];
    struct bhi_used files; /* the file and what it includes, as they were read */
    struct bhi_work_list parked;
};

/* Returns NULL if there is none. */
struct bhi_kernel_entry *bhi_kernel_cache_find(const struct bhi_runner *runner,
                                               const uint8_t key[32]);
/* Adds an entry for a kernel that is being made. Frees an unused one to make room. Returns NULL if
 * out of memory. */
struct bhi_kernel_entry *bhi_kernel_cache_add(struct bhi_runner *runner, const uint8_t key[32]);
/* Takes the entry out, so that no work finds it any more. */
void bhi_kernel_cache_forget(struct bhi_runner *runner, struct bhi_kernel_entry *entry);
/* Call it without the lock. */
void bhi_kernel_entry_drop(struct bhi_runner *runner, struct bhi_kernel_entry *entry);
/* Call it when no work uses them and no threads are left. */
void bhi_kernels_free(struct bhi_runner *runner);

#endif
