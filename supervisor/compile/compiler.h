/* Compilers: workers without a device. Each serves one request, a compile or an inspection of a
 * module, and ends with it. So a source that breaks its compiler affects no other. */
#ifndef BHI_SUPERVISOR_COMPILE_COMPILER_H
#define BHI_SUPERVISOR_COMPILE_COMPILER_H

#include "supervisor/submit/internal.h"

struct bhi_compiler_request {
    const char *subject; /* what it is about, for messages */
    const char *tenant;  /* NULL: "" */
    const char *driver;  /* whose zygote forks the compiler; NULL: any */
    uint64_t memory;     /* limit of the compiler */
    struct bhi_internal_submission internal;
};
#define BHI_COMPILER_MEMORY (1ull << 30) /* if the caller sets none */

/* Submits the request to a compiler, which starts with it. *out_event is referenced. */
bh_status bhi_compiler_start(bh_context *context, const struct bhi_compiler_request *request,
                             struct bh_event **out_event, bh_detail *detail);
/* Fails with the reason that the verdict of |event| gives. If the compiler has crashed, or run out
 * of time or memory, that is BH_COMPILE_FAILED, with the cause in |detail|. */
bh_status bhi_compiler_report(const struct bh_event *event,
                              const struct bhi_compiler_request *request, bh_detail *detail);
/* Does both, and waits for the end between them. */
bh_status bhi_compiler_ask(bh_context *context, const struct bhi_compiler_request *request,
                           bh_detail *detail);

#endif
