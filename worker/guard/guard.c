#include "worker/guard/guard.h"

#include "worker/error.h"
#include "worker/guard/cut.h"
#include "worker/guard/state.h"
#include "worker/guard/words.h"

#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>

static void find_entry(struct bhi_guard *g) {
    uint32_t id = 0;
    for (const struct bhi_ins *ins = g->ir.sections[BHI_IR_ENTRY_POINTS].first; ins;
         ins = ins->next) {
        if (ins->words[1] == SpvExecutionModelGLCompute &&
            strcmp((const char *)&ins->words[3], g->options->entry) == 0) {
            id = ins->words[2];
        }
    }
    for (g->entry = g->ir.first; g->entry && g->entry->id != id;) {
        g->entry = g->entry->next;
    }
    if (!g->entry || !g->entry->first) {
        BHI_IR_REFUSE(&g->ir, BH_REASON_KERNEL_RULE, "there is no entry point \"%s\" for compute",
                      g->options->entry);
    }
}

/* The guard does not look into decoration groups: what they decorate would seem undecorated. */
static void refuse_groups(struct bhi_guard *g) {
    for (const struct bhi_ins *ins = g->ir.sections[BHI_IR_DECORATIONS].first; ins;
         ins = ins->next) {
        const SpvOp op = bhi_ins_op(ins);
        if (op == SpvOpGroupDecorate || op == SpvOpGroupMemberDecorate) {
            BHI_IR_REFUSE(&g->ir, BH_REASON_KERNEL_RULE,
                          "decoration groups are not allowed (%s): decorate each id itself "
                          "(spirv-opt --flatten-decorations), or mark the kernel trusted",
                          bhi_ir_describe(&g->ir, op, ins->words[1]));
        }
    }
}

/* Ends |block|: goes to |out|, which returns, if |condition| (an id) holds, else to |rest|. */
static void return_where(struct bhi_guard *g, struct bhi_basic_block *block,
                         struct bhi_basic_block *rest, struct bhi_basic_block *out,
                         uint32_t condition) {
    struct bhi_ir *ir = &g->ir;
    bhi_block_do(ir, block, SpvOpSelectionMerge,
                 BHI_OPERANDS(rest->label, SpvSelectionControlMaskNone));
    bhi_block_do(ir, block, SpvOpBranchConditional,
                 BHI_OPERANDS(condition, out->label, rest->label));
    bhi_guard_return(g, g->entry, out);
}

/*   X: variables; the word set? ──▶ A: return
 *                  └──▶ X2: the rest of X, its terminator
 *
 * llvmpipe before 25 runs excess lanes: a workgroup of 5 runs as one of 8. The 3 excess lanes
 * cannot store and read only zeros, but they do run loops. A loop goes on for as long as any lane
 * does, and an excess lane always reads the abort word as 0. So for this driver X2 stores a one and
 * reads it back: a lane that reads a zero is an excess lane, and returns. (A load that is not in a
 * branch is not masked, so this one stands after the check of the word.) A kernel without counted
 * loops does without this: excess lanes cannot stay in it, and the shortest kernels would pay
 * most. */
static void check_at_entry(struct bhi_guard *g) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_basic_block *entry = g->entry->first;
    struct bhi_basic_block *aborted = bhi_block_new(ir, entry);
    struct bhi_basic_block *rest = bhi_block_new(ir, aborted);
    bhi_block_move_tail(entry, bhi_block_after_variables(entry), rest);
    bhi_block_took_over(ir, rest, entry->label);
    bhi_ir_set_name(ir, aborted->label, "bulkhead_abort");
    bhi_guard_cut_start(g, rest, rest->body.first);
    if (g->cells == 0) {
        return_where(g, entry, rest, aborted, bhi_guard_load_abort(g, entry));
        return;
    }
    struct bhi_basic_block *there = bhi_block_new(ir, aborted);
    struct bhi_basic_block *not_there = bhi_block_new(ir, there);
    bhi_ir_set_name(ir, there->label, "bulkhead_alive");
    return_where(g, entry, there, aborted, bhi_guard_load_abort(g, entry));
    bhi_block_do(ir, there, SpvOpStore,
                 BHI_OPERANDS(bhi_guard_word(g, there, BHI_WORD_ALIVE),
                              bhi_ir_constant(ir, g->type_uint, 1), SpvMemoryAccessVolatileMask));
    const uint32_t alive = bhi_guard_load(g, there, BHI_WORD_ALIVE);
    return_where(
        g, there, rest, not_there,
        bhi_block_value(ir, there, SpvOpIEqual, g->type_bool, BHI_OPERANDS(alive, g->zero)));
}

bool bhi_guard(const uint32_t *code, size_t words, const struct bhi_guard_options *options,
               struct bhi_guarded *out, struct bhi_error *error) {
    memset(out, 0, sizeof *out);
    struct bhi_guard *g = calloc(1, sizeof *g);
    if (!g) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "the guard");
        return false;
    }
    g->ir.error = error;
    g->options = options;
    g->out = out;
    volatile bool ok = false;
    if (bhi_module_init(&g->module, code, words, options->entry, options->constants,
                        options->constant_count, error) &&
        setjmp(g->ir.escape) == 0) {
        bhi_ir_parse(&g->ir, code, words);
        refuse_groups(g);
        find_entry(g);
        bhi_guard_add_words(g);
        bhi_guard_loops(g);
        bhi_guard_clamp(g);
        if (bhi_guard_is_opposite(g)) {
            bhi_guard_reverse(g);
        }
        bhi_guard_grid(g);
        bhi_guard_zero(g);
        if (options->noise) {
            bhi_guard_fill_private(g);
            bhi_guard_define(g);
        }
        check_at_entry(g);
        out->code = bhi_ir_words(&g->ir, &out->words);
        ok = true;
    }
    bhi_ir_fini(&g->ir);
    bhi_module_fini(&g->module);
    free(g);
    return ok;
}

void bhi_guarded_fini(struct bhi_guarded *guarded) {
    free(guarded->code);
    memset(guarded, 0, sizeof *guarded);
}
