/* Compilers: workers without a device that serve one internal each, a compile or a look at a
 * module, and end with it. What a source does to its compiler touches nobody else's. */
#ifndef BHI_SUPERVISOR_COMPILE_COMPILER_H
#define BHI_SUPERVISOR_COMPILE_COMPILER_H

#include "supervisor/submit/internal.h"

/* Has |internal| done, and waits for its end. |subject|: what it is about. A compiler that crashed,
 * or ran out of time or memory, is COMPILE_FAILED with the cause in |detail|. */
bh_status bhi_compiler_ask(bh_context *context, const struct bhi_internal_submission *internal,
                           const char *subject, bh_detail *detail);

#endif
