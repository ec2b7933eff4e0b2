#include "worker/guard/locals.h"

#include <string.h>

/* Limits, so that a hostile module cannot make this slow. A variable beyond them is not
 * followed. */
#define MAX_STORES 64u
#define MAX_STEPS  256u

/* Is the access volatile? |at| is the word where its memory operands would be. */
static bool is_volatile(const struct bhi_ins *ins, uint32_t at) {
    return bhi_ins_length(ins) > at && (ins->words[at] & SpvMemoryAccessVolatileMask) != 0;
}

static void add_store(struct bhi_ir *ir, struct bhi_local *local, struct bhi_ins *store) {
    if (local->store_count == local->store_capacity) {
        const uint32_t capacity = local->store_capacity * 2 + 4;
        struct bhi_ins **stores = bhi_ir_alloc(ir, capacity * sizeof(struct bhi_ins *));
        if (local->store_count > 0) {
            memcpy(stores, local->stores, local->store_count * sizeof(struct bhi_ins *));
        }
        local->stores = stores;
        local->store_capacity = capacity;
    }
    local->stores[local->store_count++] = store;
    local->shared |= local->store_count > MAX_STORES;
}

static struct bhi_local *local_of(const struct bhi_ir *ir, uint32_t id) {
    const struct bhi_ins *ins = bhi_ir_definition(ir, id);
    return ins ? ins->local : NULL;
}

static void see(struct bhi_ir *ir, struct bhi_ins *ins) {
    const SpvOp op = bhi_ins_op(ins);
    const uint32_t length = bhi_ins_length(ins);
    if (op == SpvOpLoad && !is_volatile(ins, 4)) {
        return;
    }
    uint32_t first = 1;
    if (op == SpvOpStore && !is_volatile(ins, 3)) {
        struct bhi_local *local = local_of(ir, ins->words[1]);
        if (local) {
            add_store(ir, local, ins);
        }
        first = 2; /* without the address: it may be stored to, but not stored itself */
    }
    for (uint32_t i = first; i < length; i++) {
        /* Words beyond the mask all count as ids. */
        if (i >= 64 || (ins->ids >> i & 1) != 0) {
            struct bhi_local *local = local_of(ir, ins->words[i]);
            if (local) {
                local->shared = true;
            }
        }
    }
}

void bhi_locals_find(struct bhi_ir *ir, const struct bhi_ir_function *function) {
    if (!function->first) {
        return;
    }
    for (struct bhi_ins *ins = function->first->body.first; ins; ins = ins->next) {
        if (bhi_ins_op(ins) == SpvOpVariable) {
            ins->local = bhi_ir_alloc(ir, sizeof *ins->local);
            ins->local->variable = ins;
        }
    }
    for (uint32_t i = 0; i < function->reachable; i++) {
        for (struct bhi_ins *ins = function->rpo[i]->body.first; ins; ins = ins->next) {
            see(ir, ins);
        }
    }
}

const struct bhi_local *bhi_local_of_load(const struct bhi_ir *ir, const struct bhi_ins *load) {
    if (!load || bhi_ins_op(load) != SpvOpLoad || is_volatile(load, 4)) {
        return NULL;
    }
    const struct bhi_local *local = local_of(ir, load->words[3]);
    return local && !local->shared ? local : NULL;
}

bool bhi_ins_precedes(const struct bhi_ins *a, const struct bhi_ins *b) {
    if (a->block != b->block) {
        return a->block && b->block && bhi_dominates(a->block, b->block);
    }
    for (const struct bhi_ins *ins = a->next; ins; ins = ins->next) {
        if (ins == b) {
            return true;
        }
    }
    return false;
}

/* Is there no store of |local| in the blocks that |header| dominates and |merge| does not, apart
 * from |header| itself? */
static bool untouched(const struct bhi_local *local, const struct bhi_basic_block *header,
                      const struct bhi_basic_block *merge) {
    for (uint32_t i = 0; i < local->store_count; i++) {
        const struct bhi_basic_block *block = local->stores[i]->block;
        if (block != header && bhi_dominates(header, block) && !bhi_dominates(merge, block)) {
            return false;
        }
    }
    return true;
}

uint32_t bhi_local_value_at_end(struct bhi_ir *ir, const struct bhi_local *local,
                                struct bhi_basic_block *block) {
    for (uint32_t step = 0; step < MAX_STEPS; step++) {
        const struct bhi_ins *last = NULL;
        for (uint32_t i = 0; i < local->store_count; i++) {
            const struct bhi_ins *store = local->stores[i];
            if (store->block == block && (!last || bhi_ins_precedes(last, store))) {
                last = store;
            }
        }
        if (last) {
            return last->words[2];
        }
        struct bhi_basic_block *up = block->dominator;
        if (!up) {
            return bhi_ins_length(local->variable) > 4 ? local->variable->words[4] : 0;
        }
        /* A merge block that is not a loop's header: every way from its dominator to it leads
         * through blocks that the dominator dominates and this block does not. */
        const struct bhi_ins *merge = bhi_block_merge(up);
        const bool merges = merge && bhi_ir_block(ir, merge->words[1]) == block &&
                            (!block->loop || block->loop->header != block);
        if (block->pred_count != 1 && !(merges && untouched(local, up, block))) {
            return 0;
        }
        block = up;
    }
    return 0;
}
