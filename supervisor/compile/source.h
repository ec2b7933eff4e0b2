/* A caller's source, checked, and written as a request to a compiler (ipc/compile.h). */
#ifndef BHI_SUPERVISOR_COMPILE_SOURCE_H
#define BHI_SUPERVISOR_COMPILE_SOURCE_H

#include <bulkhead/bulkhead.h>
#include <stdint.h>

struct bhi_compile_source {
    bh_source given; /* the caller's, with defaults; its names are clean lines */
    void *names;     /* owned: the memory of those names */
    void *request;   /* owned */
    uint64_t bytes;  /* of |request| */
    /* Equal for all that a compiler would do the same with: the request and the memory limit. */
    uint8_t hash[32];
};

/* |options|: what the caller has given for a kernel of it, which become |out_options|; both NULL: there
 * is none yet. Whatever it returns, call bhi_compile_source_fini. */
bh_status bhi_compile_source_take(struct bhi_compile_source *source, const bh_source *given,
                                  const bh_kernel_options *options, bh_kernel_options *out_options,
                                  const char *call, bh_detail *detail);
void bhi_compile_source_fini(struct bhi_compile_source *source);

#endif
