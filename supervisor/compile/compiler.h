/* Compilers: workers without a device. Each serves one request, a compile or an inspection of a
 * module, and ends with it. So a source that breaks its compiler affects no other. */
#ifndef BHI_SUPERVISOR_COMPILE_COMPILER_H
#define BHI_SUPERVISOR_COMPILE_COMPILER_H

#include "supervisor/submit/internal.h"

/* Submits |internal| to a compiler and waits for its end. |subject| is what it is about. If the
 * compiler crashes, or runs out of time or memory, returns BH_COMPILE_FAILED, with the cause in
 * |detail|. */
bh_status bhi_compiler_ask(bh_context *context, const struct bhi_internal_submission *internal,
                           const char *subject, bh_detail *detail);

#endif
