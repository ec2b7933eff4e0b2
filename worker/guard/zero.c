/* Sets workgroup memory that is used to zero, so that a kernel cannot read what an earlier kernel
 * has left there; or to noise, so that a kernel that reads it first is noticed. If the device
 * supports initialisers, these make zeros, else a loop at the entry point:
 *
 *   E: variables; lid = LocalInvocationIndex          (the check of guard.c comes before)
 *      for each array or variable:
 *          for (i = lid; i < elements; i += invocations) element[i] = 0;   (or noise)
 *      barrier; the rest of E
 *
 * With noise, private memory gets some, too, wherever it is new: Private variables at the entry point,
 * those of a function at its beginning. That is without a loop: a driver may end long ones early.
 */
#include "worker/guard/state.h"

#include "worker/guard/noise.h"
#include "worker/guard/values.h"
#include "worker/guard/words.h"

#include <bulkhead/bulkhead.h>
#include <string.h>

#define MAX_STEPS  64u
#define MAX_LEAVES 1024u
/* Stores to the elements of an array in private memory, and to those of all such arrays. Of longer
 * ones some elements begin with noise: the first, the last, and others between. */
#define MAX_STORES     16u
#define MAX_ALL_STORES 256u

struct zeros {
    struct bhi_guard *g;
    struct bhi_basic_block *block; /* the block that is being filled */
    struct bhi_ins *at;            /* what follows in it; NULL: nothing */
    uint32_t local_index, invocations;
    bool shares_explicitly; /* the Vulkan memory model */
    SpvStorageClass class;
    uint32_t variable;
    uint32_t leaves;
    uint32_t stores; /* to elements in private memory */
    bool noisy;      /* the variable is filled with noise */
    /* The path from the variable to what is set to zero: numbers of members, lengths of arrays. */
    struct {
        bool member;
        uint32_t number;
    } steps[MAX_STEPS];
    uint32_t step_count;
};

static bool has_array(const struct bhi_ir *ir, uint32_t type, unsigned depth) {
    const struct bhi_ins *ins = bhi_ir_definition(ir, type);
    const SpvOp op = bhi_ins_op(ins);
    if (op == SpvOpTypeArray || op == SpvOpTypeRuntimeArray || depth > MAX_STEPS) {
        return true;
    }
    for (uint32_t i = 2; op == SpvOpTypeStruct && i < bhi_ins_length(ins); i++) {
        if (has_array(ir, ins->words[i], depth + 1)) {
            return true;
        }
    }
    return false;
}

static uint32_t number(struct zeros *z, uint32_t value) {
    return bhi_ir_constant(&z->g->ir, z->g->type_uint, value);
}

static uint32_t binary(struct zeros *z, SpvOp op, uint32_t a, uint32_t b) {
    return bhi_block_value(&z->g->ir, z->block, op, z->g->type_uint, BHI_OPERANDS(a, b));
}

/* Stores to what the steps select. |operands| has the variable, and will have an index for each step. */
static void store(struct zeros *z, uint32_t type, uint32_t *operands) {
    struct bhi_ir *ir = &z->g->ir;
    uint32_t pointer = z->variable;
    operands[0] = z->variable;
    for (uint32_t s = 0; s < z->step_count; s++) {
        operands[1 + s] = z->steps[s].member ? number(z, z->steps[s].number) : operands[1 + s];
    }
    if (z->step_count > 0) {
        pointer = bhi_block_value_before(ir, z->block, z->at, SpvOpAccessChain,
                                         bhi_ir_type_pointer(ir, z->class, type), operands,
                                         1 + z->step_count);
    }
    const uint32_t what = z->noisy ? bhi_guard_noise(z->g, type, NULL) : bhi_ir_null(ir, type);
    const bool shares = z->shares_explicitly && z->class == SpvStorageClassWorkgroup;
    bhi_block_do_before(ir, z->block, z->at, SpvOpStore,
                        (const uint32_t[]){pointer, what, SpvMemoryAccessNonPrivatePointerMask},
                        shares ? 3 : 2);
}

/* Stores to element |i|, an id, of what the steps select. */
static void store_element(struct zeros *z, uint32_t type, uint32_t i) {
    uint32_t operands[1 + MAX_STEPS];
    for (uint32_t s = z->step_count; s-- > 0;) { /* the index of the last array changes fastest */
        if (!z->steps[s].member) {
            const uint32_t length = number(z, z->steps[s].number);
            operands[1 + s] = binary(z, SpvOpUMod, i, length);
            i = binary(z, SpvOpUDiv, i, length);
        }
    }
    store(z, type, operands);
}

/* Returns how many elements the steps select. */
static uint32_t element_count(struct zeros *z) {
    struct bhi_ir *ir = &z->g->ir;
    uint64_t count = 1;
    for (uint32_t s = 0; s < z->step_count; s++) {
        if (!z->steps[s].member &&
            (__builtin_mul_overflow(count, z->steps[s].number, &count) || count > UINT32_MAX / 2)) {
            BHI_IR_REFUSE(ir, BH_REASON_KERNEL_LIMIT, "elements in %s: more than %u",
                          bhi_ir_describe(ir, SpvOpVariable, z->variable), UINT32_MAX / 2);
        }
    }
    return (uint32_t)count;
}

/* Stores to elements of what the steps select, in private memory. */
static void store_some(struct zeros *z, uint32_t type) {
    const uint32_t count = element_count(z);
    uint32_t most = count < MAX_STORES ? count : MAX_STORES;
    if (count > 1) {
        most = z->stores + most > MAX_ALL_STORES ? 1 : most;
        z->stores += most;
    }
    for (uint32_t k = 0; k < most; k++) {
        uint64_t i = most > 1 ? (uint64_t)k * (count - 1) / (most - 1) : 0;
        uint32_t operands[1 + MAX_STEPS];
        for (uint32_t s = z->step_count; s-- > 0;) {
            if (!z->steps[s].member) {
                operands[1 + s] = number(z, (uint32_t)(i % z->steps[s].number));
                i /= z->steps[s].number;
            }
        }
        store(z, type, operands);
    }
}

static void loop(struct zeros *z, uint32_t type) {
    struct bhi_ir *ir = &z->g->ir;
    const uint32_t count = element_count(z);
    if (z->leaves++ >= MAX_LEAVES) {
        BHI_IR_REFUSE(ir, BH_REASON_KERNEL_LIMIT,
                      "arrays in workgroup memory: more than %u (%s): use fewer", MAX_LEAVES,
                      bhi_ir_describe(ir, SpvOpVariable, z->variable));
    }
    struct bhi_basic_block *before = z->block, *header = bhi_block_new(ir, before),
                           *body = bhi_block_new(ir, header), *again = bhi_block_new(ir, body),
                           *after = bhi_block_new(ir, again);
    bhi_block_do(ir, before, SpvOpBranch, BHI_OPERANDS(header->label));
    const uint32_t next = bhi_ir_id(ir);
    const uint32_t i =
        bhi_block_value(ir, header, SpvOpPhi, z->g->type_uint,
                        BHI_OPERANDS(z->local_index, before->label, next, again->label));
    const uint32_t more = bhi_block_value(ir, header, SpvOpULessThan, z->g->type_bool,
                                          BHI_OPERANDS(i, number(z, count)));
    bhi_block_do(ir, header, SpvOpLoopMerge,
                 BHI_OPERANDS(after->label, again->label, SpvLoopControlMaskNone));
    bhi_block_do(ir, header, SpvOpBranchConditional, BHI_OPERANDS(more, body->label, after->label));
    z->block = body;
    store_element(z, type, i);
    bhi_block_do(ir, body, SpvOpBranch, BHI_OPERANDS(again->label));
    struct bhi_ins *add =
        bhi_ins_new(ir, SpvOpIAdd, z->g->type_uint, next, BHI_OPERANDS(i, z->invocations));
    bhi_ins_append(&again->body, add);
    add->block = again;
    bhi_block_do(ir, again, SpvOpBranch, BHI_OPERANDS(header->label));
    z->block = after;
}

static void zero(struct zeros *z, uint32_t type) {
    struct bhi_ir *ir = &z->g->ir;
    const struct bhi_ins *ins = bhi_ir_definition(ir, type);
    const SpvOp op = bhi_ins_op(ins);
    uint64_t length = 0;
    if (!has_array(ir, type, 0)) {
        (z->class == SpvStorageClassWorkgroup ? loop : store_some)(z, type);
        return;
    }
    if (z->step_count == MAX_STEPS ||
        (op == SpvOpTypeArray &&
         (!bhi_constant_of(&z->g->ir, &z->g->module, ins->words[3], &length) || length == 0 ||
          length > UINT32_MAX)) ||
        op == SpvOpTypeRuntimeArray) {
        BHI_IR_REFUSE(ir, BH_REASON_KERNEL_RULE,
                      "%s has an array whose length cannot be computed here: write it as a literal "
                      "or a specialization constant",
                      bhi_ir_describe(ir, SpvOpVariable, z->variable));
    }
    z->step_count++;
    z->steps[z->step_count - 1].member = op == SpvOpTypeStruct;
    if (op == SpvOpTypeArray) {
        z->steps[z->step_count - 1].number = (uint32_t)length;
        zero(z, ins->words[2]);
    } else {
        for (uint32_t i = 2; i < bhi_ins_length(ins); i++) {
            z->steps[z->step_count - 1].number = i - 2;
            zero(z, ins->words[i]);
        }
    }
    z->step_count--;
}

static void begin(struct zeros *z) {
    struct bhi_guard *g = z->g;
    struct bhi_ir *ir = &g->ir;
    uint32_t size[3];
    if (!bhi_module_local_size(&g->module, size, ir->error)) {
        bhi_ir_escape(ir);
    }
    z->shares_explicitly = bhi_ir_has_capability(ir, SpvCapabilityVulkanMemoryModel);
    z->invocations = number(z, size[0] * size[1] * size[2]);
    /* An entry point may have one such variable, not two. */
    const uint32_t variable =
        bhi_ir_builtin(ir, SpvBuiltInLocalInvocationIndex, 0, g->type_uint, "bulkhead_local_index");
    bhi_guard_add_to_interface(g, variable);
    const uint32_t type = bhi_ir_definition(ir, bhi_ir_definition(ir, variable)->type)->words[3];
    const struct bhi_ins *integer = bhi_ir_definition(ir, type);
    if (bhi_ins_op(integer) != SpvOpTypeInt || integer->words[2] != 32) {
        BHI_IR_REFUSE(ir, BH_REASON_KERNEL_RULE,
                      "%s (LocalInvocationIndex) is not a 32-bit integer",
                      bhi_ir_describe(ir, SpvOpVariable, variable));
    }
    z->local_index = bhi_block_value(ir, z->block, SpvOpLoad, type, BHI_OPERANDS(variable));
    if (type != g->type_uint) {
        z->local_index =
            bhi_block_value(ir, z->block, SpvOpBitcast, g->type_uint, BHI_OPERANDS(z->local_index));
    }
}

static void barrier(struct zeros *z) {
    uint32_t semantics =
        SpvMemorySemanticsAcquireReleaseMask | SpvMemorySemanticsWorkgroupMemoryMask;
    if (z->shares_explicitly) {
        semantics |= SpvMemorySemanticsMakeAvailableMask | SpvMemorySemanticsMakeVisibleMask;
    }
    const uint32_t scope = number(z, SpvScopeWorkgroup);
    bhi_block_do(&z->g->ir, z->block, SpvOpControlBarrier,
                 BHI_OPERANDS(scope, scope, number(z, semantics)));
}

/* Returns true if a function uses |variable|; the entry point's list may name more. An initialiser
 * would make unused memory cost something. */
static bool is_used(const struct bhi_guard *g, uint32_t variable) {
    return variable >= g->module.bound || bhi_module_uses(&g->module, variable) != 0;
}

void bhi_guard_zero(struct bhi_guard *g) {
    struct bhi_ir *ir = &g->ir;
    struct zeros z = {.g = g, .class = SpvStorageClassWorkgroup};
    struct bhi_basic_block *rest = NULL;
    for (struct bhi_ins *ins = ir->sections[BHI_IR_GLOBALS].first; ins; ins = ins->next) {
        if (bhi_ins_op(ins) != SpvOpVariable || ins->words[3] != SpvStorageClassWorkgroup ||
            bhi_ins_length(ins) > 4 || !is_used(g, ins->result)) {
            continue;
        }
        const uint32_t type = bhi_ir_definition(ir, ins->type)->words[3];
        g->out->zeroed++;
        /* Variables with an explicit layout share their memory, so not all of them may have an
         * initialiser. */
        /* What the guard counts itself begins at 0. */
        z.noisy = g->options->noise && ins->result < g->module.bound;
        if (g->options->zero_initialize && !z.noisy &&
            !bhi_ir_is_decorated(ir, type, SpvDecorationBlock)) {
            struct bhi_ins *null = bhi_ins_new(ir, SpvOpConstantNull, type, bhi_ir_id(ir), NULL, 0);
            bhi_ins_insert(&ir->sections[BHI_IR_GLOBALS], ins, null);
            bhi_ins_set(ir, ins, BHI_OPERANDS(SpvStorageClassWorkgroup, null->result));
            continue;
        }
        if (!rest) {
            struct bhi_basic_block *entry = g->entry->first;
            rest = bhi_block_new(ir, entry);
            bhi_block_move_tail(entry, bhi_block_after_variables(entry), rest);
            bhi_block_took_over(ir, rest, entry->label);
            z.block = entry;
            begin(&z);
        }
        z.variable = ins->result;
        zero(&z, type);
    }
    if (rest) {
        barrier(&z);
        bhi_block_do(ir, z.block, SpvOpBranch, BHI_OPERANDS(rest->label));
    }
}

/* Fills |variable| where |z| is, if it begins with nothing. */
static void fill(struct zeros *z, const struct bhi_ins *variable) {
    const struct bhi_ir *ir = &z->g->ir;
    const uint32_t type = bhi_ir_definition(ir, variable->type)->words[3];
    if (bhi_ins_length(variable) == 4 && variable->result < z->g->module.bound &&
        bhi_guard_has_noise(ir, type, true)) {
        z->variable = variable->result;
        z->class = (SpvStorageClass)variable->words[3];
        zero(z, type);
    }
}

void bhi_guard_fill_private(struct bhi_guard *g) {
    struct zeros z = {.g = g, .noisy = true};
    for (const struct bhi_ir_function *f = g->ir.first; f; f = f->next) {
        if (!f->first) {
            continue;
        }
        z.block = f->first;
        z.at = bhi_block_after_variables(f->first);
        for (const struct bhi_ins *ins = f->first->body.first; ins != z.at; ins = ins->next) {
            if (bhi_ins_op(ins) == SpvOpVariable) {
                fill(&z, ins);
            }
        }
        const struct bhi_ins *ins = f == g->entry ? g->ir.sections[BHI_IR_GLOBALS].first : NULL;
        for (; ins; ins = ins->next) {
            if (bhi_ins_op(ins) == SpvOpVariable && ins->words[3] == SpvStorageClassPrivate &&
                is_used(g, ins->result)) {
                fill(&z, ins);
            }
        }
    }
}
