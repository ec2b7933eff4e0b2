/* Adds the buffer with the abort words to a module, the counter, and the code that reads the
 * word. */
#ifndef BHI_WORKER_GUARD_WORDS_H
#define BHI_WORKER_GUARD_WORDS_H

#include "worker/guard/state.h"

/* Increments of the counter between two looks at the word. */
#define BHI_GUARD_LIMIT 4096u

void bhi_guard_add_words(struct bhi_guard *g);
/* Appends to |block|: a pointer to a member of struct bhi_guard_words; its value. */
enum { BHI_WORD_ABORT, BHI_WORD_FLAGS, BHI_WORD_ALIVE, BHI_WORD_GROUPS };
uint32_t bhi_guard_word(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t member);
uint32_t bhi_guard_load(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t member);
/* Appends to |block|: is the word set? Returns the id of a bool. */
uint32_t bhi_guard_load_abort(struct bhi_guard *g, struct bhi_basic_block *block);
/* Makes |block|, of |function|, one that returns. */
void bhi_guard_return(struct bhi_guard *g, const struct bhi_ir_function *function,
                      struct bhi_basic_block *block);
/* Appends to |block|: counter += |amount| (an id). Returns the id of a bool: time to look. */
uint32_t bhi_guard_count(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t amount);

/* The entry point for compute lists |variable| in its interface; all of them do. */
void bhi_guard_add_to_interface(struct bhi_guard *g, uint32_t variable);
void bhi_guard_add_to_compute(struct bhi_guard *g, uint32_t variable);

#endif
