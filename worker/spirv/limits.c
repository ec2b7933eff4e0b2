#include "worker/spirv/limits.h"
#include "base/format.h"

#include "worker/error.h"
#include "worker/spirv/index.h"
#include "worker/spirv/tools.h"

#include <bulkhead/bulkhead.h>
#include <stdlib.h>

struct call {
    uint32_t caller, callee;
};

struct walk {
    const uint32_t *code;
    size_t words;
    uint32_t bound;
    struct bhi_error *error;
    struct id {
        uint64_t inlined; /* of a function: its instructions, later those of its callees too */
        /* Of a type: how deep it nests. Of a block: how many constructs are around it. A valid id
         * is only one of the two. */
        uint16_t depth;
        uint32_t parts; /* of a type: it, and those of what it is made of */
        bool fixed;     /* the block's depth is final: a merge instruction gives it */
    } *ids;
    struct call *calls;
    size_t call_count;
    uint32_t types;
    /* Where the walk is. */
    size_t number;
    SpvOp op;
    uint32_t function, block;
    uint32_t merge; /* the block's merge block; 0: none */
};

static bool exceeds(const struct walk *w, uint64_t value, uint64_t limit, const char *what,
                    const char *remedy) {
    if (value <= limit) {
        return false;
    }
    char where[128];
    bhi_format(where, sizeof where, " (instruction %zu, Op%s): %s", w->number,
               spvOpcodeString((uint32_t)w->op), remedy);
    BHI_ERROR(w->error, BH_REASON_GUARD_LIMIT, what, .value = value, .limit = limit, .text = where);
    return true;
}

/* Returns true if a whole instruction is at |at|: the module may be malformed. */
static bool has_whole(const uint32_t *code, size_t words, const uint32_t *at) {
    const size_t left = words - (size_t)(at - code);
    return left > 0 && bhi_spv_length(at) > 0 && bhi_spv_length(at) <= left;
}

static void raise_to(struct walk *w, uint32_t id, uint32_t depth) {
    if (id < w->bound && w->ids[id].depth < depth) {
        w->ids[id].depth = (uint16_t)depth;
    }
}

/* A type comes before its uses, so one pass finds all depths. */
static bool take_type(struct walk *w, const uint32_t *at, size_t length) {
    size_t end = length;
    switch (w->op) {
    case SpvOpTypeVector:
    case SpvOpTypeMatrix:
    case SpvOpTypeArray:
    case SpvOpTypeRuntimeArray:
        end = 3;
        break;
    case SpvOpTypePointer:
        end = 4;
        break;
    case SpvOpTypeStruct:
    case SpvOpTypeFunction:
        break;
    default:
        end = 2;
        break;
    }
    uint32_t inner = 0, parts = 1;
    for (size_t i = w->op == SpvOpTypePointer ? 3 : 2; i < end && i < length; i++) {
        const struct id *id = at[i] < w->bound ? &w->ids[at[i]] : NULL;
        inner = id && id->depth > inner ? id->depth : inner;
        parts += id && w->op != SpvOpTypePointer ? id->parts : 0;
    }
    if (length > 1) {
        raise_to(w, at[1], inner + 1);
    }
    if (length > 1 && at[1] < w->bound) {
        w->ids[at[1]].parts = parts;
    }
    w->types++;
    return !exceeds(w, w->types, BHI_LIMIT_TYPES, "types", "declare fewer types") &&
           !exceeds(w, parts, BHI_LIMIT_PARTS, "parts of a type",
                    "make an array of what is alike") &&
           !exceeds(w, inner + 1u, BHI_LIMIT_TYPE_NESTING, "types nested in each other",
                    "flatten the type");
}

/* A block is as deep as the block that branches to it, or one deeper if that is a header, unless it
 * is the header's merge block. In a valid module those blocks come first. */
static void reach(struct walk *w, uint32_t label) {
    if (label < w->bound && !w->ids[label].fixed && w->block < w->bound) {
        raise_to(w, label, w->ids[w->block].depth + (w->merge != 0 ? 1u : 0u));
    }
}

static void settle(struct walk *w, uint32_t label, uint32_t depth) {
    if (label < w->bound) {
        w->ids[label].fixed = true;
        w->ids[label].depth = (uint16_t)depth;
    }
}

static bool take_branch(struct walk *w, const uint32_t *at, size_t length) {
    const uint32_t here = w->block < w->bound ? w->ids[w->block].depth : 0;
    switch (w->op) {
    case SpvOpSelectionMerge:
    case SpvOpLoopMerge:
        if (length >= 3) {
            w->merge = at[1];
            settle(w, at[1], here);
            if (w->op == SpvOpLoopMerge) {
                settle(w, at[2], here + 1);
            }
        }
        return !exceeds(w, here + 1u, BHI_LIMIT_CONTROL_NESTING,
                        "ifs, switches and loops nested in each other",
                        "split the kernel into functions, or flatten the chain");
    case SpvOpBranch:
        if (length >= 2) {
            reach(w, at[1]);
        }
        return true;
    case SpvOpBranchConditional:
        for (size_t i = 2; i < 4 && i < length; i++) {
            reach(w, at[i]);
        }
        return true;
    case SpvOpSwitch:
        /* Literals may be two words long. If a literal is taken for a label, the depth of that
         * block becomes at most that of this switch's cases. */
        for (size_t i = 2; i < length; i++) {
            reach(w, at[i]);
        }
        return true;
    default:
        return true;
    }
}

static bool is_type(SpvOp op) {
    return (op >= SpvOpTypeVoid && op <= SpvOpTypePipe) || op == SpvOpTypeForwardPointer;
}

static bool take(struct walk *w, const uint32_t *at, size_t length) {
    const SpvOp op = w->op = bhi_spv_op(at);
    w->number++;
    if (op == SpvOpFunction) {
        w->function = length > 2 && at[2] < w->bound ? at[2] : 0;
    } else if (op == SpvOpLabel) {
        w->block = length > 1 ? at[1] : 0;
        w->merge = 0;
    } else if (op == SpvOpFunctionCall && length > 3 && at[3] < w->bound) {
        w->calls[w->call_count++] = (struct call){w->function, at[3]};
    }
    w->ids[w->function].inlined++;
    return is_type(op) ? take_type(w, at, length) : take_branch(w, at, length);
}

/* Counts instructions with all calls inlined. Each round follows calls one level further. If the
 * numbers still change after many rounds, calls are nested too deep or recursive: both are
 * refused. */
static bool inlines(struct walk *w) {
    uint64_t *total = calloc(2 * (size_t)w->bound, sizeof *total);
    if (!total) {
        BHI_ERROR(w->error, BH_REASON_HOST_MEMORY, NULL, .text = "a check of the kernel");
        return false;
    }
    uint64_t *next = total + w->bound;
    bool ok = true, changed = w->call_count > 0;
    for (uint32_t id = 0; id < w->bound; id++) {
        total[id] = w->ids[id].inlined;
    }
    for (uint32_t round = 0; ok && changed; round++) {
        changed = false;
        for (size_t i = 0; i < w->call_count; i++) {
            next[w->calls[i].caller] = w->ids[w->calls[i].caller].inlined;
        }
        for (size_t i = 0; i < w->call_count; i++) {
            const struct call *c = &w->calls[i];
            next[c->caller] += total[c->callee];
            if (next[c->caller] > BHI_LIMIT_INLINED) {
                BHI_ERROR(w->error, BH_REASON_GUARD_LIMIT, "instructions once calls are inlined",
                          .value = next[c->caller], .limit = BHI_LIMIT_INLINED,
                          .text = " (OpFunctionCall): call less, or loop instead");
                ok = false;
                break;
            }
        }
        for (size_t i = 0; ok && i < w->call_count; i++) {
            const uint32_t caller = w->calls[i].caller;
            changed |= total[caller] != next[caller];
            total[caller] = next[caller];
        }
        if (ok && changed && round >= BHI_LIMIT_CALL_NESTING) {
            BHI_ERROR(w->error, BH_REASON_GUARD_LIMIT, "calls nested in each other",
                      .value = round + 1, .limit = BHI_LIMIT_CALL_NESTING,
                      .text = ", or there is recursion (OpFunctionCall): inline some of them");
            ok = false;
        }
    }
    free(total);
    return ok;
}

static bool walk_module(struct walk *w) {
    const uint32_t *at = w->code + 5;
    for (; has_whole(w->code, w->words, at); at += bhi_spv_length(at)) {
        if (!take(w, at, bhi_spv_length(at))) {
            return false;
        }
    }
    /* Of one that is cut, the validator says more. */
    return at < w->code + w->words || w->call_count == 0 || inlines(w);
}

static size_t count_calls(const uint32_t *code, size_t words) {
    size_t count = 0;
    for (const uint32_t *at = code + 5; has_whole(code, words, at); at += bhi_spv_length(at)) {
        count += bhi_spv_op(at) == SpvOpFunctionCall;
    }
    return count;
}

bool bhi_guard_limits(const uint32_t *code, size_t words, struct bhi_error *error) {
    struct walk w = {.code = code, .words = words, .error = error};
    if (words * sizeof *code > BHI_LIMIT_MODULE_BYTES) {
        BHI_ERROR(error, BH_REASON_GUARD_LIMIT, "bytes of the module",
                  .value = words * sizeof *code, .limit = BHI_LIMIT_MODULE_BYTES,
                  .text = ": split the kernel, or strip its debug information "
                          "(spirv-opt --strip-debug)");
        return false;
    }
    if (words < 5) {
        return true;
    }
    w.bound = code[3];
    if (w.bound > BHI_LIMIT_ID_BOUND) {
        BHI_ERROR(error, BH_REASON_GUARD_LIMIT, "bound of ids (the module's header)",
                  .value = w.bound, .limit = BHI_LIMIT_ID_BOUND,
                  .text = ": renumber them (spirv-opt --compact-ids)");
        return false;
    }
    const size_t ids = w.bound > 0 ? w.bound : 1, calls = count_calls(code, words);
    w.ids = calloc(ids, sizeof *w.ids);
    w.calls = calloc(calls > 0 ? calls : 1, sizeof *w.calls);
    bool ok = w.ids && w.calls;
    if (!ok) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "a check of the kernel");
    } else {
        ok = walk_module(&w);
    }
    free(w.ids);
    free(w.calls);
    return ok;
}
