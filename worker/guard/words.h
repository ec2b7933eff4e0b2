/* Adds the buffer with the abort words to a module, and the counter, and makes the code that reads
 * the word. */
#ifndef BHI_WORKER_GUARD_WORDS_H
#define BHI_WORKER_GUARD_WORDS_H

#include "worker/guard/state.h"

/* The most that the counter counts between two looks at the word. */
#define BHI_GUARD_LIMIT 4096u

/* Append to |block|: a pointer to a member of struct bhi_guard_words, or a load of it. */
enum { BHI_WORD_ABORT, BHI_WORD_FLAGS, BHI_WORD_ALIVE, BHI_WORD_GROUPS };
uint32_t bhi_guard_word(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t member);
uint32_t bhi_guard_load(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t member);
/* Appends the test whether the abort word is set to |block|. Returns the id of a bool. */
uint32_t bhi_guard_load_abort(struct bhi_guard *g, struct bhi_basic_block *block);
/* Ends |block|, which belongs to |function|, with a return. */
void bhi_guard_return(struct bhi_guard *g, const struct bhi_ir_function *function,
                      struct bhi_basic_block *block);
/* Appends counter += |amount| (an id) to |block|. Returns the id of a bool that says whether it is
 * time to look at the word. */
uint32_t bhi_guard_count(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t amount);

/* Does the entry point |entry| list |variable|? */
bool bhi_guard_lists(const struct bhi_ins *entry, uint32_t variable);
/* Adds |variable| to the interface of the compute entry point, or of all entry points. */
void bhi_guard_add_to_interface(struct bhi_guard *g, uint32_t variable);
void bhi_guard_add_to_compute(struct bhi_guard *g, uint32_t variable);

#endif
