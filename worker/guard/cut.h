/* Counts iterations where the driver would end a long loop silently (llvmpipe): the submission
 * then ends LOOP_LIMIT. */
#ifndef BHI_WORKER_GUARD_CUT_H
#define BHI_WORKER_GUARD_CUT_H

#include "worker/guard/cfg.h"
#include "worker/guard/state.h"

/* The fates of |function|'s loops are known, and
 * nothing is rewritten yet; its control flow must be built again where this returns true. */
bool bhi_guard_cut_loops(struct bhi_guard *g, struct bhi_ir_function *function);
/* Before |at|, at the beginning of the kernel. */
void bhi_guard_cut_start(struct bhi_guard *g, struct bhi_basic_block *block, struct bhi_ins *at);
/* Appends to |block|, where |loop| looks at the word: has it counted too many? Returns the block
 * that goes on. */
struct bhi_basic_block *bhi_guard_cut_look(struct bhi_guard *g, const struct bhi_loop *loop,
                                           struct bhi_basic_block *block);

#endif
