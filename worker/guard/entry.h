/* Rewrites the entry point: it reads the abort word first, and sets up the counter and the words.
 */
#ifndef BHI_WORKER_GUARD_ENTRY_H
#define BHI_WORKER_GUARD_ENTRY_H

#include "worker/guard/state.h"

/* Returns at once when the word is set. */
void bhi_guard_entry_check(struct bhi_guard *g);
/* The first instruction of a function's first block that is no variable, nor a line before one. */
struct bhi_ins *bhi_guard_after_variables(const struct bhi_basic_block *block);

#endif
