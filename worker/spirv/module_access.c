#include "worker/spirv/module_access.h"

#include <bulkhead/bulkhead.h>
#include <stdlib.h>
#include <string.h>

/* Each pointer is traced back to the variable that it comes from. If it can come from several (a
 * function parameter with several callers, a select, a phi), these variables form a class, and what
 * happens to one counts for all. A pointer that is stored in a variable (variable pointers) is not
 * followed; only trusted kernels have these. This finds honest mistakes; the read-only mapping
 * stops the others. */
struct walk {
    struct bhi_module *module;
    struct id {
        uint32_t root;  /* of a pointer, variable or parameter: id of its class; 0: none */
        uint32_t first; /* of a function: word offset of its OpFunction */
        bool reachable; /* of a function */
    } *ids;
    bool changed;
};

static uint32_t find(struct walk *walk, uint32_t id) {
    if (id >= walk->module->bound) {
        return 0;
    }
    while (walk->ids[id].root != id && walk->ids[id].root != 0) {
        id = walk->ids[id].root;
    }
    return walk->ids[id].root == 0 ? 0 : id;
}

/* Records that |id| may point to what |source| points to. */
static void flow(struct walk *walk, uint32_t id, uint32_t source) {
    uint32_t from = find(walk, source);
    if (from == 0 || id >= walk->module->bound) {
        return;
    }
    uint32_t to = find(walk, id);
    if (to == from) {
        return;
    }
    walk->changed = true;
    if (to == 0) {
        walk->ids[id].root = from;
    } else {
        walk->ids[to].root = from;
        walk->module->uses[from] |= walk->module->uses[to];
    }
}

static void touch(struct walk *walk, uint32_t pointer, uint32_t bits) {
    uint32_t root = find(walk, pointer);
    bits |= BHI_MODULE_USED;
    if (root != 0 && (walk->module->uses[root] & bits) != bits) {
        walk->module->uses[root] |= (uint8_t)bits;
        walk->changed = true;
    }
}

/* Returns parameter |number| of the function that begins at word |offset|, or 0. */
static uint32_t parameter(const struct bhi_module *module, uint32_t offset, size_t number) {
    for (size_t i = offset; i < module->words;) {
        const uint32_t *at = &module->code[i];
        SpvOp op = bhi_spv_op(at);
        if (op == SpvOpFunctionParameter && number-- == 0) {
            return at[2];
        }
        if (op == SpvOpLabel || op == SpvOpFunctionEnd) {
            return 0;
        }
        i += bhi_spv_length(at);
    }
    return 0;
}

static void call(struct walk *walk, const uint32_t *at, size_t length) {
    uint32_t callee = at[3];
    if (callee >= walk->module->bound || walk->ids[callee].first == 0) {
        return;
    }
    if (!walk->ids[callee].reachable) {
        walk->ids[callee].reachable = true;
        walk->changed = true;
    }
    for (size_t i = 4; i < length; i++) {
        if (find(walk, at[i]) != 0) {
            touch(walk, at[i], 0);
            flow(walk, parameter(walk->module, walk->ids[callee].first, i - 4), at[i]);
        }
    }
    flow(walk, at[2], callee); /* the function's id stands for the value that it returns */
}

static void visit(struct walk *walk, const uint32_t *at) {
    const size_t length = bhi_spv_length(at);
    const SpvOp op = bhi_spv_op(at);
    switch (op) {
    case SpvOpAccessChain:
    case SpvOpInBoundsAccessChain:
    case SpvOpPtrAccessChain:
    case SpvOpInBoundsPtrAccessChain:
    case SpvOpCopyObject:
        touch(walk, at[3], 0);
        flow(walk, at[2], at[3]);
        break;
    case SpvOpSelect:
        flow(walk, at[2], at[4]);
        flow(walk, at[2], at[5]);
        break;
    case SpvOpPhi:
        for (size_t i = 3; i + 1 < length; i += 2) {
            flow(walk, at[2], at[i]);
        }
        break;
    case SpvOpFunctionCall:
        call(walk, at, length);
        break;
    case SpvOpArrayLength:
        touch(walk, at[3], BHI_MODULE_MEASURED);
        break;
    case SpvOpLoad:
    case SpvOpAtomicLoad:
        touch(walk, at[3], BH_ACCESS_READ);
        break;
    case SpvOpStore:
    case SpvOpAtomicStore:
        touch(walk, at[1], BH_ACCESS_WRITE);
        break;
    case SpvOpCopyMemory:
    case SpvOpCopyMemorySized:
        touch(walk, at[1], BH_ACCESS_WRITE);
        touch(walk, at[2], BH_ACCESS_READ);
        break;
    default:
        /* Read-modify-write atomics, extended instructions with pointer operands (modf, frexp), and
         * all others that take a pointer count as a read and a write. */
        for (size_t i = 1; i < length; i++) {
            if (op == SpvOpName || op == SpvOpLabel || op == SpvOpVariable || op == SpvOpLine) {
                break;
            }
            bool atomic = op >= SpvOpAtomicExchange && op <= SpvOpAtomicXor;
            atomic |=
                op == SpvOpAtomicFAddEXT || op == SpvOpAtomicFMinEXT || op == SpvOpAtomicFMaxEXT;
            if ((atomic || op == SpvOpExtInst) && i >= 3) {
                touch(walk, at[i], BH_ACCESS_READ_WRITE);
            }
        }
        break;
    }
}

static bool is_shared(const struct walk *walk, uint32_t id) {
    const struct bhi_module *module = walk->module;
    const uint32_t at = id < module->bound ? module->definitions[id] : 0;
    return at != 0 && (module->code[at] & SpvOpCodeMask) == SpvOpVariable &&
           module->code[at + 3] == SpvStorageClassWorkgroup;
}

/* Workgroup memory that an instruction names in any way counts as used. Unused memory begins with
 * what another kernel has left there. A word that may be an id is treated as one. */
static void name_shared(struct walk *walk, const uint32_t *at) {
    size_t end = bhi_spv_length(at);
    const SpvOp op = bhi_spv_op(at);
    switch (op) {
    case SpvOpLine:
    case SpvOpLabel:
    case SpvOpBranch:
    case SpvOpBranchConditional:
    case SpvOpSwitch:
    case SpvOpLoopMerge:
    case SpvOpSelectionMerge:
    case SpvOpVectorShuffle:
        return; /* none of their words is a pointer */
    case SpvOpLoad:
    case SpvOpCompositeExtract:
    case SpvOpArrayLength:
        end = end < 4 ? end : 4;
        break;
    case SpvOpCompositeInsert:
        end = end < 5 ? end : 5;
        break;
    case SpvOpStore:
    case SpvOpCopyMemory:
        end = end < 3 ? end : 3;
        break;
    default:
        break;
    }
    for (size_t i = 1; i < end; i++) {
        const bool literal = (op == SpvOpVariable && i == 3) || (op == SpvOpExtInst && i == 4);
        if (!literal && is_shared(walk, at[i])) {
            touch(walk, at[i], 0);
        }
    }
}

/* Walks through all functions that are known to be reachable. */
static void pass(struct walk *walk) {
    const struct bhi_module *module = walk->module;
    bool inside = false;
    uint32_t function = 0;
    for (size_t i = 5; i < module->words; i += bhi_spv_length(&module->code[i])) {
        const uint32_t *at = &module->code[i];
        SpvOp op = bhi_spv_op(at);
        if (op == SpvOpFunction) {
            function = at[2];
            inside = walk->ids[function].reachable;
        } else if (op == SpvOpFunctionEnd) {
            inside = false;
        } else if (inside) {
            if (op == SpvOpReturnValue) {
                flow(walk, function, at[1]);
            }
            visit(walk, at);
            name_shared(walk, at);
        }
    }
}

bool bhi_module_find_accesses(struct bhi_module *module) {
    struct walk walk = {.module = module, .ids = calloc(module->bound, sizeof *walk.ids)};
    const bool ok = walk.ids;
    if (ok) {
        bool global = true;
        for (size_t i = 5; i < module->words; i += bhi_spv_length(&module->code[i])) {
            const uint32_t *at = &module->code[i];
            SpvOp op = bhi_spv_op(at);
            if (op == SpvOpFunction) {
                global = false;
                walk.ids[at[2]].first = (uint32_t)i;
            } else if (op == SpvOpVariable && global) {
                walk.ids[at[2]].root = at[2];
                if (bhi_spv_length(at) > 4) { /* its initialiser, a pointer, points to it */
                    touch(&walk, at[4], 0);
                }
            }
        }
        walk.ids[module->code[module->entry + 2]].reachable = true;
        do {
            walk.changed = false;
            pass(&walk);
        } while (walk.changed);
        /* All members of a class get what was found for the class. */
        for (uint32_t id = 1; id < module->bound; id++) {
            uint32_t root = find(&walk, id);
            if (root != 0) {
                module->uses[id] |= module->uses[root];
            }
        }
    }
    free(walk.ids);
    return ok;
}
