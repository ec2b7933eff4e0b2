/* Variables of a function that are only loaded and stored whole. Unoptimised modules have them in
 * place of phis. Their addresses are used for nothing else, so all loads and stores are known. */
#ifndef BHI_WORKER_GUARD_LOCALS_H
#define BHI_WORKER_GUARD_LOCALS_H

#include "worker/guard/cfg.h"

struct bhi_local {
    bool shared; /* its address is used otherwise: nothing is known about it */
    struct bhi_ins *variable;
    struct bhi_ins **stores; /* in reachable blocks; words[2] is the stored value */
    uint32_t store_count, store_capacity;
};

/* Finds these variables in a function whose control flow is built. */
void bhi_locals_find(struct bhi_ir *ir, const struct bhi_ir_function *function);
/* Returns the variable that |load| reads; NULL if |load| is no OpLoad of one, or volatile. */
const struct bhi_local *bhi_local_of_load(const struct bhi_ir *ir, const struct bhi_ins *load);
/* Does |a| come before |b| on every way to |b|? Both must be in reachable blocks. */
bool bhi_ins_precedes(const struct bhi_ins *a, const struct bhi_ins *b);
/* Returns the id of the value that |local| has at the end of |block|, whatever way led there; 0:
 * unknown. */
uint32_t bhi_local_value_at_end(struct bhi_ir *ir, const struct bhi_local *local,
                                struct bhi_basic_block *block);

#endif
