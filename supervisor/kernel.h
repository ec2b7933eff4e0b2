/* Kernels: SPIR-V in a sealed memfd, and its identity. Nothing of it is parsed here. */
#ifndef BHI_KERNEL_H
#define BHI_KERNEL_H

#include "context.h"
#include "core/handle.h"
#include <bulkhead/bulkhead.h>

struct bh_kernel {
    struct bhi_doomed doomed; /* first */
    struct bhi_handle handle; /* the caller's references: one of refs while there are any */
    _Atomic uint32_t refs;
    bh_context *context; /* referenced */
    uint64_t id;
    uint8_t hash[32];
    char name[64];
    char entry[256];
    int fd; /* code, sealed also against writing */
    uint64_t code_size;
    bh_specialization *specializations;
    uint32_t specialization_count;
    bool trusted;
    bh_kernel_info *declared; /* lock; owned; NULL: nobody has asked what it binds */
};

static inline void bhi_kernel_ref(struct bh_kernel *kernel) {
    atomic_fetch_add_explicit(&kernel->refs, 1, memory_order_relaxed);
}
void bhi_kernel_unref_locked(struct bh_kernel *kernel); /* lock held */

#endif
