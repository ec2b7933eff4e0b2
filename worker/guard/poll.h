/* Adds a poll of the abort word to a loop. */
#ifndef BHI_WORKER_GUARD_POLL_H
#define BHI_WORKER_GUARD_POLL_H

#include "worker/guard/cfg.h"
#include "worker/guard/state.h"

/* A poll in the loop's header. */
void bhi_guard_poll(struct bhi_guard *g, struct bhi_loop *loop);
/* The same in the exit of a loop in a continue construct. */
void bhi_guard_poll_exit(struct bhi_guard *g, struct bhi_loop *loop);
/* What an iteration adds to the counter: the id of a constant. */
uint32_t bhi_guard_weight(struct bhi_guard *g, const struct bhi_loop *loop);
/* Ends |from|: if |due|, look at the word: set, |aborted| returns; else |reset| clears the counter.
 * Then |to|. */
void bhi_guard_look(struct bhi_guard *g, const struct bhi_loop *loop, struct bhi_basic_block *from,
                    uint32_t due, struct bhi_basic_block *look, struct bhi_basic_block *aborted,
                    struct bhi_basic_block *reset, struct bhi_basic_block *to);
/* Of an OpLoopMerge: what asks for unrolling and peeling. Mesa would unroll a chunk 1024 times. */
void bhi_guard_drop_hints(struct bhi_guard *g, struct bhi_ins *merge);

#endif
