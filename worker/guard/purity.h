/* Which instructions have no side effect, so that they may run twice. */
#ifndef BHI_WORKER_GUARD_PURITY_H
#define BHI_WORKER_GUARD_PURITY_H

#include "worker/guard/ir.h"

bool bhi_ins_is_arithmetic(const struct bhi_ir *ir, const struct bhi_ins *ins);
/* Is |ins| without side effects, or a load? Then it may run twice. */
bool bhi_ins_is_repeatable(const struct bhi_ir *ir, const struct bhi_ins *ins);
/* Does |pointer| point to memory that no invocation can write? */
bool bhi_pointer_is_constant(const struct bhi_ir *ir, uint32_t pointer);

#endif
