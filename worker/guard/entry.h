/* Rewrites the entry point: it first reads the abort word, then prepares the counter and the
 * words. */
#ifndef BHI_WORKER_GUARD_ENTRY_H
#define BHI_WORKER_GUARD_ENTRY_H

#include "worker/guard/state.h"

/* The kernel returns at once if the word is set. */
void bhi_guard_entry_check(struct bhi_guard *g);
/* Returns the first instruction of a function's first block that is neither a variable nor a line
 * before one. */
struct bhi_ins *bhi_guard_after_variables(const struct bhi_basic_block *block);

#endif
