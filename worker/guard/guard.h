/* Rewrites a kernel so that it can be stopped: every loop that is not provably short regularly
 * reads a word in memory, and the invocation returns if the host has set the word. docs/kernels.md
 * says how a module is changed and why. */
#ifndef BHI_WORKER_GUARD_GUARD_H
#define BHI_WORKER_GUARD_GUARD_H

#include "worker/backend.h"
#include "worker/guard/types.h"

/* |code| has passed bhi_validate(). Returns a module that must be validated again, or false with
 * *error. INVALID_KERNEL and LIMIT_EXCEEDED name the instruction or the limit and say what to do;
 * the third possible status is OUT_OF_HOST_MEMORY. */
bool bhi_guard(const uint32_t *code, size_t words, const struct bhi_guard_options *options,
               struct bhi_guarded *out, struct bhi_error *error);
void bhi_guarded_fini(struct bhi_guarded *guarded);

#endif
