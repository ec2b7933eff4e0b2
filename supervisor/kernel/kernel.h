/* Kernels: a name, and a body (body.h), which may have other names, too. Nothing is parsed here. */
#ifndef BHI_SUPERVISOR_KERNEL_KERNEL_H
#define BHI_SUPERVISOR_KERNEL_KERNEL_H

#include "core/handle.h"
#include "supervisor/context/context.h"
#include "supervisor/kernel/body.h"
#include <bulkhead/bulkhead.h>

struct bh_kernel {
    struct bhi_doomed doomed; /* first */
    struct bhi_handle handle; /* the caller's references: one of refs while there are any */
    _Atomic uint32_t refs;
    bh_context *context;          /* referenced */
    struct bhi_kernel_body *body; /* referenced */
    char name[64];
    uint32_t block[3], shared_bytes; /* of an image: for launches that do not say it */
    bh_kernel_info *declared;        /* lock; owned; NULL: its bindings are not known */
};

static inline void bhi_kernel_ref(struct bh_kernel *kernel) {
    atomic_fetch_add_explicit(&kernel->refs, 1, memory_order_relaxed);
}
void bhi_kernel_unref_locked(struct bh_kernel *kernel); /* lock held */
void bhi_kernel_unref(struct bh_kernel *kernel);        /* no lock */

/* Copies a caller's options for |call|, and checks them for a kernel of that format, all but that an
 * image needs an entry point; |given| is NULL: the defaults. */
bh_status bhi_kernel_take_options(const bh_kernel_options *given, enum bhi_kernel_format format,
                                  const char *call, bh_kernel_options *options, bh_detail *detail);
/* Returns true if length and magic number are those of a module; or those of an image, or the text is
 * that of PTX. */
bool bhi_kernel_is_module(const void *code, uint64_t bytes);
bool bhi_kernel_is_image(const void *code, uint64_t bytes);

#endif
