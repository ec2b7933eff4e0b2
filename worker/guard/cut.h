/* Counts iterations on a driver that silently ends long loops (llvmpipe). If the driver ended one,
 * the submission ends LOOP_LIMIT. */
#ifndef BHI_WORKER_GUARD_CUT_H
#define BHI_WORKER_GUARD_CUT_H

#include "worker/guard/cfg.h"
#include "worker/guard/state.h"

/* Call it when the fates of |function|'s loops are decided and nothing is rewritten yet. If it
 * returns true, the control flow must be built again. */
bool bhi_guard_cut_loops(struct bhi_guard *g, struct bhi_ir_function *function);
/* Adds the start of the counting before |at|, at the beginning of the kernel. */
void bhi_guard_cut_start(struct bhi_guard *g, struct bhi_basic_block *block, struct bhi_ins *at);
/* Appends to |block|, where |loop| looks at the word, a check whether it has counted too many
 * rounds. Returns the block that goes on. */
struct bhi_basic_block *bhi_guard_cut_look(struct bhi_guard *g, const struct bhi_loop *loop,
                                           struct bhi_basic_block *block);

#endif
