#include "worker/guard/words.h"

#include "worker/guard/state.h"

#include <bulkhead/bulkhead.h>
#include <string.h>

#define SPIRV_1_3 0x00010300u
#define SPIRV_1_4 0x00010400u

/* Decides where the buffer is bound: in the first descriptor set that no variable of the module
 * uses, else at a free binding of the last set that the kernel uses. */
static void place_words(struct bhi_guard *g) {
    struct bhi_ir *ir = &g->ir;
    struct bhi_guarded *out = g->out;
    const uint32_t count = g->options->max_sets;
    uint8_t *taken = bhi_ir_alloc(ir, count + 1);
    for (const struct bhi_ins *ins = NULL;
         (ins = bhi_ir_decoration(ir, SpvDecorationDescriptorSet, ins));) {
        if (ins->words[3] < count) {
            const bool used = bhi_module_uses(&g->module, ins->words[1]) != 0;
            taken[ins->words[3]] |= used ? 2 : 1;
        }
    }
    for (uint32_t set = 0; set < count; set++) {
        if (!taken[set]) {
            out->set = set;
            out->shares_set = false;
            return;
        }
        if (taken[set] & 2) {
            out->set = set;
            out->shares_set = true;
        }
    }
    if (!out->shares_set) {
        BHI_IR_REFUSE(ir, BH_REASON_KERNEL_LIMIT,
                      "the kernel declares all %u descriptor sets of the device "
                      "(maxBoundDescriptorSets), and uses none; the guard needs one: declare fewer",
                      count);
    }
    out->binding = bhi_ir_free_number(ir, SpvDecorationBinding, NULL, 0);
}

/* Does nothing if |entry|, an OpEntryPoint, already lists |variable|. */
bool bhi_guard_lists(const struct bhi_ins *entry, uint32_t variable) {
    const uint32_t length = bhi_ins_length(entry);
    /* The list follows the name, which ends with the first word whose last byte is zero. */
    uint32_t i = 3;
    while (i < length && entry->words[i] >> 24 != 0) {
        i++;
    }
    while (++i < length) {
        if (entry->words[i] == variable) {
            return true;
        }
    }
    return false;
}

static void add_to_interface(struct bhi_ir *ir, struct bhi_ins *entry, uint32_t variable) {
    const uint32_t length = bhi_ins_length(entry);
    if (bhi_guard_lists(entry, variable)) {
        return;
    }
    uint32_t *operands = bhi_ir_alloc(ir, length * sizeof *operands);
    memcpy(operands, &entry->words[1], (length - 1) * sizeof *operands);
    operands[length - 1] = variable;
    bhi_ins_set(ir, entry, operands, length);
}

/* From SPIR-V 1.4 on an entry point lists every global variable that it uses. */
static void add_to_interfaces(struct bhi_guard *g, uint32_t variable) {
    for (struct bhi_ins *ins = g->ir.sections[BHI_IR_ENTRY_POINTS].first; ins; ins = ins->next) {
        add_to_interface(&g->ir, ins, variable);
    }
}

void bhi_guard_add_to_interface(struct bhi_guard *g, uint32_t variable) {
    for (struct bhi_ins *ins = g->ir.sections[BHI_IR_ENTRY_POINTS].first; ins; ins = ins->next) {
        if (ins->words[2] == g->entry->id) {
            add_to_interface(&g->ir, ins, variable);
        }
    }
}

void bhi_guard_add_to_compute(struct bhi_guard *g, uint32_t variable) {
    for (struct bhi_ins *ins = g->ir.sections[BHI_IR_ENTRY_POINTS].first; ins; ins = ins->next) {
        if (ins->words[1] == SpvExecutionModelGLCompute) {
            add_to_interface(&g->ir, ins, variable);
        }
    }
}

/* Returns true if the module uses the Vulkan memory model. A load of the abort word must see what
 * the host writes while the kernel runs; in this model operands of the load say so, in others
 * decorations of the member. The load is volatile and not atomic, because Mesa 25 merges a relaxed
 * atomic load with that of the entry check. It is also coherent, because on NVIDIA a load that is
 * only volatile is answered from the cache of its multiprocessor. */
static bool vulkan_memory_model(const struct bhi_ir *ir) {
    return ir->sections[BHI_IR_MEMORY_MODEL].first->words[2] == SpvMemoryModelVulkan;
}

void bhi_guard_add_words(struct bhi_guard *g) {
    struct bhi_ir *ir = &g->ir;
    place_words(g);
    g->type_uint = bhi_ir_shared(ir, SpvOpTypeInt, 0, BHI_OPERANDS(32, 0));
    g->type_bool = bhi_ir_shared(ir, SpvOpTypeBool, 0, NULL, 0);
    g->zero = bhi_ir_constant(ir, g->type_uint, 0);
    g->limit = bhi_ir_constant(ir, g->type_uint, BHI_GUARD_LIMIT);
    if (ir->version < SPIRV_1_3) {
        bhi_ir_extension(ir, "SPV_KHR_storage_buffer_storage_class");
    }
    /* Makes a new type: one of the module would have the module's decorations. */
    uint32_t members[sizeof(struct bhi_guard_words) / 4];
    const uint32_t count = sizeof members / sizeof *members;
    for (uint32_t i = 0; i < count; i++) {
        members[i] = g->type_uint;
    }
    const uint32_t block = bhi_ir_global(ir, SpvOpTypeStruct, 0, members, count);
    const uint32_t pointer = bhi_ir_type_pointer(ir, SpvStorageClassStorageBuffer, block);
    g->word_pointer = bhi_ir_type_pointer(ir, SpvStorageClassStorageBuffer, g->type_uint);
    g->buffer =
        bhi_ir_global(ir, SpvOpVariable, pointer, BHI_OPERANDS(SpvStorageClassStorageBuffer));
    g->counter = bhi_ir_global(ir, SpvOpVariable,
                               bhi_ir_type_pointer(ir, SpvStorageClassPrivate, g->type_uint),
                               BHI_OPERANDS(SpvStorageClassPrivate, g->zero));
    bhi_ir_decorate(ir, SpvOpDecorate, BHI_OPERANDS(block, SpvDecorationBlock));
    for (uint32_t i = 0; i < count; i++) {
        bhi_ir_decorate(ir, SpvOpMemberDecorate,
                        BHI_OPERANDS(block, i, SpvDecorationOffset, 4 * i));
    }
    if (!vulkan_memory_model(ir)) {
        bhi_ir_decorate(ir, SpvOpMemberDecorate,
                        BHI_OPERANDS(block, BHI_WORD_ABORT, SpvDecorationCoherent));
        bhi_ir_decorate(ir, SpvOpMemberDecorate,
                        BHI_OPERANDS(block, BHI_WORD_ABORT, SpvDecorationVolatile));
    }
    bhi_ir_decorate(ir, SpvOpDecorate,
                    BHI_OPERANDS(g->buffer, SpvDecorationDescriptorSet, g->out->set));
    bhi_ir_decorate(ir, SpvOpDecorate,
                    BHI_OPERANDS(g->buffer, SpvDecorationBinding, g->out->binding));
    if (ir->version >= SPIRV_1_4) {
        add_to_interfaces(g, g->buffer);
        add_to_interfaces(g, g->counter);
    }
    bhi_ir_set_name(ir, block, "bulkhead_words");
    bhi_ir_set_name(ir, g->buffer, "bulkhead_guard");
    bhi_ir_set_name(ir, g->counter, "bulkhead_counter");
}

uint32_t bhi_guard_word(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t member) {
    struct bhi_ir *ir = &g->ir;
    return bhi_block_value(ir, block, SpvOpAccessChain, g->word_pointer,
                           BHI_OPERANDS(g->buffer, bhi_ir_constant(ir, g->type_uint, member)));
}

uint32_t bhi_guard_load(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t member) {
    struct bhi_ir *ir = &g->ir;
    const uint32_t word = bhi_guard_word(g, block, member);
    if (vulkan_memory_model(ir)) {
        return bhi_block_value(
            ir, block, SpvOpLoad, g->type_uint,
            BHI_OPERANDS(word,
                         SpvMemoryAccessVolatileMask | SpvMemoryAccessMakePointerVisibleMask |
                             SpvMemoryAccessNonPrivatePointerMask,
                         bhi_ir_constant(ir, g->type_uint, SpvScopeQueueFamily)));
    }
    return bhi_block_value(ir, block, SpvOpLoad, g->type_uint,
                           BHI_OPERANDS(word, SpvMemoryAccessVolatileMask));
}

uint32_t bhi_guard_load_abort(struct bhi_guard *g, struct bhi_basic_block *block) {
    const uint32_t word = bhi_guard_load(g, block, BHI_WORD_ABORT);
    return bhi_block_value(&g->ir, block, SpvOpINotEqual, g->type_bool,
                           BHI_OPERANDS(word, g->zero));
}

void bhi_guard_return(struct bhi_guard *g, const struct bhi_ir_function *function,
                      struct bhi_basic_block *block) {
    struct bhi_ir *ir = &g->ir;
    const uint32_t type = bhi_ir_definition(ir, function->id)->type;
    if (bhi_ins_op(bhi_ir_definition(ir, type)) == SpvOpTypeVoid) {
        bhi_block_do(ir, block, SpvOpReturn, NULL, 0);
    } else {
        bhi_block_do(ir, block, SpvOpReturnValue, BHI_OPERANDS(bhi_ir_null(ir, type)));
    }
}

uint32_t bhi_guard_count(struct bhi_guard *g, struct bhi_basic_block *block, uint32_t amount) {
    struct bhi_ir *ir = &g->ir;
    const uint32_t before =
        bhi_block_value(ir, block, SpvOpLoad, g->type_uint, BHI_OPERANDS(g->counter));
    const uint32_t after =
        bhi_block_value(ir, block, SpvOpIAdd, g->type_uint, BHI_OPERANDS(before, amount));
    bhi_block_do(ir, block, SpvOpStore, BHI_OPERANDS(g->counter, after));
    return bhi_block_value(ir, block, SpvOpUGreaterThanEqual, g->type_bool,
                           BHI_OPERANDS(after, g->limit));
}
