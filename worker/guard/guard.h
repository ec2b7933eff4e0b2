/* Rewrites a kernel so that it can be stopped: every loop that is not provably short looks at a
 * word in memory now and then, and the invocation returns when the host has set it. docs/guard.md
 * says what is done to a module and why.
 */
#ifndef BHI_WORKER_GUARD_GUARD_H
#define BHI_WORKER_GUARD_GUARD_H

#include "worker/backend.h"
#include "worker/guard/types.h"

/* |code| has passed bhi_validate(). Returns a module that must be validated again, or false with
 * *error: INVALID_KERNEL or LIMIT_EXCEEDED, and a text that names the instruction or the limit and
 * says what to do; OUT_OF_HOST_MEMORY. */
bool bhi_guard(const uint32_t *code, size_t words, const struct bhi_guard_options *options,
               struct bhi_guarded *out, struct bhi_error *error);
void bhi_guarded_fini(struct bhi_guarded *guarded);

#endif
