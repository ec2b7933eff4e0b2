/* Variables of a function that are only loaded and stored whole: what unoptimised modules have in
 * the place of phis. Their addresses go nowhere, so that loads and stores are all there is. */
#ifndef BHI_WORKER_GUARD_LOCALS_H
#define BHI_WORKER_GUARD_LOCALS_H

#include "worker/guard/cfg.h"

struct bhi_local {
    bool shared; /* its address is used for something else: nothing is known about it */
    struct bhi_ins *variable;
    struct bhi_ins **stores; /* in blocks that can be reached; the value is words[2] */
    uint32_t store_count, store_capacity;
};

/* Looks at those of a function whose control flow is built. */
void bhi_locals_find(struct bhi_ir *ir, const struct bhi_ir_function *function);
/* What |load| reads from; NULL: no OpLoad of such a variable, or a volatile one. */
const struct bhi_local *bhi_local_of_load(const struct bhi_ir *ir, const struct bhi_ins *load);
/* Both in blocks that can be reached: does |a| come before |b| on every way to it? */
bool bhi_ins_precedes(const struct bhi_ins *a, const struct bhi_ins *b);
/* The id that |local| has at the end of |block|, on every way to there; 0: not known. */
uint32_t bhi_local_value_at_end(struct bhi_ir *ir, const struct bhi_local *local,
                                struct bhi_basic_block *block);

#endif
