#include "worker/guard/guard.h"

#include "worker/error.h"
#include "worker/guard/clamp.h"
#include "worker/guard/entry.h"
#include "worker/guard/grid.h"
#include "worker/guard/loops.h"
#include "worker/guard/state.h"
#include "worker/guard/words.h"
#include "worker/guard/zero.h"

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
        bhi_ir_refuse(&g->ir, BH_REASON_KERNEL_RULE, "there is no entry point \"%s\" for compute",
                      g->options->entry);
    }
}

/* The guard does not look into decoration groups: what they decorate would seem undecorated. */
static void refuse_groups(struct bhi_guard *g) {
    for (const struct bhi_ins *ins = g->ir.sections[BHI_IR_DECORATIONS].first; ins;
         ins = ins->next) {
        const SpvOp op = bhi_ins_op(ins);
        if (op == SpvOpGroupDecorate || op == SpvOpGroupMemberDecorate) {
            bhi_ir_refuse(&g->ir, BH_REASON_KERNEL_RULE,
                          "decoration groups are not allowed (%s): decorate each id itself "
                          "(spirv-opt --flatten-decorations), or mark the kernel trusted",
                          bhi_ir_describe(&g->ir, op, ins->words[1]));
        }
    }
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
        bhi_guard_grid(g);
        bhi_guard_zero(g);
        bhi_guard_entry_check(g);
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
