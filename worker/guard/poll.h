/* Adds a poll of the abort word to a loop. */
#ifndef BHI_WORKER_GUARD_POLL_H
#define BHI_WORKER_GUARD_POLL_H

#include "worker/guard/cfg.h"
#include "worker/guard/state.h"

/* Adds a poll to the loop's header. */
void bhi_guard_poll(struct bhi_guard *g, struct bhi_loop *loop);
/* Adds a poll to the exit of a loop in a continue construct. */
void bhi_guard_poll_exit(struct bhi_guard *g, struct bhi_loop *loop);
/* Returns the id of a constant: what an iteration adds to the counter. */
uint32_t bhi_guard_weight(struct bhi_guard *g, const struct bhi_loop *loop);
/* Ends |from|. If |due|, |look| reads the word: if it is set, |aborted| returns, else |reset|
 * clears the counter. All others go on to |to|. */
void bhi_guard_look(struct bhi_guard *g, const struct bhi_loop *loop, struct bhi_basic_block *from,
                    uint32_t due, struct bhi_basic_block *look, struct bhi_basic_block *aborted,
                    struct bhi_basic_block *reset, struct bhi_basic_block *to);
/* Removes hints to unroll and peel from an OpLoopMerge. Mesa would unroll a chunk 1024 times. */
void bhi_guard_drop_hints(struct bhi_guard *g, struct bhi_ins *merge);

#endif
