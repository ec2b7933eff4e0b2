#include "worker/guard/cfg.h"

#include <bulkhead/bulkhead.h>
#include <string.h>

/* Numbers the reachable blocks in reverse post-order. It does not recurse, because the module
 * decides how deep its blocks nest. */
static void number_blocks(struct bhi_ir *ir, struct bhi_ir_function *f, uint32_t count) {
    struct frame {
        struct bhi_basic_block *block;
        const uint32_t *labels;
        uint32_t left;
    } *stack = bhi_ir_alloc(ir, count * sizeof *stack);
    struct bhi_basic_block **post = bhi_ir_alloc(ir, count * sizeof *post);
    uint32_t depth = 0, done = 0;
    struct bhi_basic_block *next = f->first;
    for (;;) {
        if (next) {
            next->order = 1; /* marks it as visited */
            stack[depth].block = next;
            stack[depth].left = bhi_block_successors(ir, next, &stack[depth].labels);
            depth++;
        }
        struct frame *top = &stack[depth - 1];
        next = NULL;
        while (top->left > 0 && !next) {
            /* The last one first, so that the first successor comes first in the reversed order. */
            struct bhi_basic_block *to = bhi_ir_block(ir, top->labels[--top->left]);
            next = to && to->order == 0 ? to : NULL;
        }
        if (!next) {
            post[done++] = top->block;
            if (--depth == 0) {
                break;
            }
        }
    }
    f->reachable = done;
    f->rpo = bhi_ir_alloc(ir, done * sizeof *f->rpo);
    for (uint32_t i = 0; i < done; i++) {
        f->rpo[i] = post[done - 1 - i];
        f->rpo[i]->order = i + 1;
    }
}

static void find_preds(struct bhi_ir *ir, struct bhi_ir_function *f) {
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < f->reachable; i++) {
            const uint32_t *labels;
            const uint32_t count = bhi_block_successors(ir, f->rpo[i], &labels);
            for (uint32_t k = 0; k < count; k++) {
                struct bhi_basic_block *to = bhi_ir_block(ir, labels[k]);
                if (!to || to->order == 0) {
                    continue;
                }
                if (pass == 1) {
                    to->preds[to->pred_count] = f->rpo[i];
                }
                to->pred_count++;
            }
        }
        for (uint32_t i = 0; pass == 0 && i < f->reachable; i++) {
            f->rpo[i]->preds =
                bhi_ir_alloc(ir, (f->rpo[i]->pred_count + 1) * sizeof *f->rpo[i]->preds);
            f->rpo[i]->pred_count = 0;
        }
    }
}

static struct bhi_basic_block *common(struct bhi_basic_block *a, struct bhi_basic_block *b) {
    while (a != b) {
        while (a->order > b->order) {
            a = a->dominator;
        }
        while (b->order > a->order) {
            b = b->dominator;
        }
    }
    return a;
}

/* Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm. */
static void find_dominators(struct bhi_ir_function *f) {
    f->rpo[0]->dominator = f->rpo[0];
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 1; i < f->reachable; i++) {
            struct bhi_basic_block *block = f->rpo[i], *dominator = NULL;
            for (uint32_t k = 0; k < block->pred_count; k++) {
                struct bhi_basic_block *pred = block->preds[k];
                if (pred->dominator) {
                    dominator = !dominator ? pred : common(pred, dominator);
                }
            }
            changed |= block->dominator != dominator;
            block->dominator = dominator;
        }
    }
}

/* Numbers each block when a walk through the dominator tree enters and leaves it. The numbers come
 * from the sizes of the subtrees. */
static void number_dominators(struct bhi_ir *ir, struct bhi_ir_function *f) {
    uint32_t *size = bhi_ir_alloc(ir, (f->reachable + 1) * sizeof *size);
    for (uint32_t i = f->reachable; i-- > 0;) {
        struct bhi_basic_block *block = f->rpo[i];
        size[block->order]++;
        if (i > 0) {
            size[block->dominator->order] += size[block->order];
        }
    }
    /* A block comes after its dominator in the order; siblings share what is left of its range. */
    uint32_t *next = bhi_ir_alloc(ir, (f->reachable + 1) * sizeof *next);
    for (uint32_t i = 0; i < f->reachable; i++) {
        struct bhi_basic_block *block = f->rpo[i];
        uint32_t *from = i > 0 ? &next[block->dominator->order] : &next[0];
        block->enters = *from;
        block->leaves = block->enters + size[block->order];
        *from += size[block->order];
        next[block->order] = block->enters + 1;
        block->leaves--;
    }
    f->rpo[0]->dominator = NULL;
}

/* Returns the block that jumps back to |header|, or NULL. */
static struct bhi_basic_block *find_latch(struct bhi_ir *ir, const struct bhi_basic_block *header) {
    struct bhi_basic_block *latch = NULL;
    for (uint32_t i = 0; i < header->pred_count; i++) {
        if (header->preds[i]->order < header->order) {
            continue;
        }
        const struct bhi_ins *merge = bhi_block_merge(header);
        if (!merge || bhi_ins_op(merge) != SpvOpLoopMerge ||
            !bhi_dominates(header, header->preds[i]) || (latch && latch != header->preds[i])) {
            BHI_IR_REFUSE(ir, BH_REASON_KERNEL_RULE,
                          "%s is the target of a back edge, but not the header of a structured "
                          "loop; compile the kernel with structured control flow",
                          bhi_ir_describe(ir, SpvOpLabel, header->label));
        }
        latch = header->preds[i];
    }
    return latch;
}

static void find_loops(struct bhi_ir *ir, struct bhi_ir_function *f) {
    f->loops = bhi_ir_alloc(ir, (f->reachable + 1) * sizeof *f->loops);
    f->loop_count = 0;
    for (uint32_t i = 0; i < f->reachable; i++) {
        struct bhi_basic_block *block = f->rpo[i];
        struct bhi_loop *outer = block->dominator ? block->dominator->loop : NULL;
        while (outer && bhi_dominates(outer->merge, block)) {
            outer = outer->parent;
        }
        block->loop = outer;
        struct bhi_basic_block *latch = find_latch(ir, block);
        if (!latch) {
            continue;
        }
        const struct bhi_ins *merge = bhi_block_merge(block);
        struct bhi_loop *loop = bhi_ir_alloc(ir, sizeof *loop);
        loop->header = block;
        loop->latch = latch;
        loop->parent = outer;
        loop->merge = bhi_ir_block(ir, merge->words[1]);
        loop->cont = bhi_ir_block(ir, merge->words[2]);
        loop->in_continue = outer && (outer->in_continue || bhi_loop_continues(outer, block));
        if (!loop->merge || !loop->cont || !bhi_dominates(loop->cont, latch)) {
            BHI_IR_REFUSE(ir, BH_REASON_KERNEL_RULE,
                          "the continue target of the loop at %s does not lead to its back edge; "
                          "compile the kernel with structured control flow",
                          bhi_ir_describe(ir, SpvOpLabel, block->label));
        }
        block->loop = loop;
        f->loops[f->loop_count++] = loop;
    }
}

void bhi_cfg_build(struct bhi_ir *ir, struct bhi_ir_function *f) {
    uint32_t count = 0;
    for (struct bhi_basic_block *block = f->first; block; block = block->next, count++) {
        block->order = 0;
        block->dominator = NULL;
        block->preds = NULL;
        block->pred_count = 0;
        block->loop = NULL;
        block->mark = NULL;
    }
    f->reachable = f->loop_count = 0;
    if (!f->first) {
        return; /* only declared, without a body */
    }
    number_blocks(ir, f, count);
    f->unreachable = bhi_ir_alloc(ir, (count - f->reachable + 1) * sizeof *f->unreachable);
    f->unreachable_count = 0;
    for (struct bhi_basic_block *block = f->first; block; block = block->next) {
        if (block->order == 0) {
            f->unreachable[f->unreachable_count++] = block;
        }
    }
    find_preds(ir, f);
    find_dominators(f);
    number_dominators(ir, f);
    find_loops(ir, f);
}
