/* Gives workgroups their ids in the opposite order, along each axis: a driver starts them by their ids,
 * so of several groups that write a word another one is now the last.
 *
 *   E: variables; WorkgroupId' = NumWorkgroups - 1 - WorkgroupId
 *      GlobalInvocationId' = GlobalInvocationId + (WorkgroupId' - WorkgroupId) * size of a workgroup
 *
 * All reads of the two become reads of these. NumWorkgroups is that of the whole grid (grid.c). */
#include "worker/guard/builtins.h"
#include "worker/guard/words.h"

struct order {
    struct bhi_guard *g;
    struct bhi_basic_block *block; /* the first one, which is filled in front of */
    struct bhi_ins *at;
    uint32_t type; /* three uints */
};

/* Is a built-in variable that matters here a member of a block? No compiler writes this. */
static bool has_members(const struct bhi_ir *ir) {
    for (const struct bhi_ins *ins = ir->sections[BHI_IR_DECORATIONS].first; ins; ins = ins->next) {
        if (bhi_ins_op(ins) == SpvOpMemberDecorate && ins->words[3] == SpvDecorationBuiltIn) {
            return true;
        }
    }
    return false;
}

/* Returns the entry point's variable of the builtin; 0 if it has none. Of two, which older validators take,
 * one would tell what the other hides. */
static uint32_t find(struct bhi_guard *g, SpvBuiltIn builtin) {
    uint32_t found = 0;
    for (const struct bhi_ins *i = NULL;
         (i = bhi_ir_decoration(&g->ir, SpvDecorationBuiltIn, i));) {
        if (i->words[3] != (uint32_t)builtin || !bhi_guard_in_interface(g, i->words[1])) {
            continue;
        }
        if (found != 0 && found != i->words[1]) {
            BHI_IR_REFUSE(&g->ir, BH_REASON_KERNEL_RULE,
                          "%%%u and %%%u are the same built-in variable: declare one", found,
                          i->words[1]);
        }
        found = i->words[1];
    }
    return found;
}

static uint32_t binary(struct order *o, SpvOp op, uint32_t a, uint32_t b) {
    return bhi_block_value_before(&o->g->ir, o->block, o->at, op, o->type, BHI_OPERANDS(a, b));
}

static uint32_t type_of(const struct order *o, uint32_t variable) {
    const struct bhi_ir *ir = &o->g->ir;
    return bhi_ir_definition(ir, bhi_ir_definition(ir, variable)->type)->words[3];
}

/* Its integers may be signed. */
static uint32_t convert(struct order *o, uint32_t value, uint32_t from, uint32_t to) {
    return from == to ? value
                      : bhi_block_value_before(&o->g->ir, o->block, o->at, SpvOpBitcast, to,
                                               BHI_OPERANDS(value));
}

static uint32_t load(struct order *o, uint32_t variable) {
    const uint32_t type = type_of(o, variable);
    const uint32_t value =
        bhi_block_value_before(&o->g->ir, o->block, o->at, SpvOpLoad, type, BHI_OPERANDS(variable));
    return convert(o, value, type, o->type);
}

/* Loads the builtin, which the kernel need not have. */
static uint32_t load_builtin(struct order *o, SpvBuiltIn builtin, const char *name) {
    struct bhi_ir *ir = &o->g->ir;
    uint32_t variable = find(o->g, builtin);
    if (variable == 0) {
        const uint32_t pointer = bhi_ir_type_pointer(ir, SpvStorageClassInput, o->type);
        variable = bhi_ir_builtin(ir, builtin, pointer, o->type, name);
        bhi_guard_add_to_interface(o->g, variable);
    }
    return load(o, variable);
}

static uint32_t constant(struct order *o, const uint32_t values[3]) {
    struct bhi_ir *ir = &o->g->ir;
    uint32_t parts[3];
    for (int i = 0; i < 3; i++) {
        parts[i] = bhi_ir_constant(ir, o->g->type_uint, values[i]);
    }
    return bhi_ir_shared(ir, SpvOpConstantComposite, o->type, parts, 3);
}

static void store(struct order *o, uint32_t copy, uint32_t value) {
    bhi_block_do_before(&o->g->ir, o->block, o->at, SpvOpStore,
                        BHI_OPERANDS(copy, convert(o, value, o->type, type_of(o, copy))));
}

void bhi_guard_reverse(struct bhi_guard *g) {
    struct bhi_ir *ir = &g->ir;
    struct order o = {.g = g, .block = g->entry->first};
    const uint32_t group = find(g, SpvBuiltInWorkgroupId);
    const uint32_t invocation = find(g, SpvBuiltInGlobalInvocationId);
    uint32_t size[3];
    if ((group == 0 && invocation == 0) || has_members(ir)) {
        return;
    }
    if (!bhi_module_local_size(&g->module, size, ir->error)) {
        bhi_ir_escape(ir);
    }
    /* First of all: what follows reads the built-in ones. */
    const uint32_t group_copy =
        group == 0 ? 0 : bhi_guard_replace_builtin(g, group, "bulkhead_group");
    const uint32_t invocation_copy =
        invocation == 0 ? 0 : bhi_guard_replace_builtin(g, invocation, "bulkhead_invocation");
    o.at = bhi_block_after_variables(o.block);
    o.type = bhi_ir_shared(ir, SpvOpTypeVector, 0, BHI_OPERANDS(g->type_uint, 3));
    const uint32_t counts = load_builtin(&o, SpvBuiltInNumWorkgroups, "bulkhead_counts");
    const uint32_t was = load_builtin(&o, SpvBuiltInWorkgroupId, "bulkhead_group_before");
    const uint32_t last = binary(&o, SpvOpISub, counts, constant(&o, (const uint32_t[]){1, 1, 1}));
    const uint32_t is = binary(&o, SpvOpISub, last, was);
    if (group_copy != 0) {
        store(&o, group_copy, is);
    }
    if (invocation_copy != 0) {
        const uint32_t moved =
            binary(&o, SpvOpIMul, binary(&o, SpvOpISub, is, was), constant(&o, size));
        store(&o, invocation_copy, binary(&o, SpvOpIAdd, load(&o, invocation), moved));
    }
}
