/* How much workgroup memory a module uses. One walk over its types measures each type once; a type
 * comes after the types that it consists of, so there is no recursion. */
#include "worker/spirv/module.h"

#include <bulkhead/bulkhead.h>
#include <stdlib.h>

#include "worker/error.h"

/* The bytes of a type; they stop at the maximum instead of overflowing. 0 if the type has no
 * size. */
struct size {
    uint64_t packed; /* tightly packed */
    uint64_t laid;   /* as its decorations lay it out, from its first to its last byte */
};

/* A member of a struct: its offset, and the layout of a matrix in it. */
struct member {
    uint32_t offset, stride;
    bool placed, by_row;
};

struct measure {
    const struct bhi_module *module;
    struct id {
        struct size size;
        uint32_t stride; /* ArrayStride */
        uint32_t first;  /* of a struct: index of the first of its |decorations| */
        bool block;
    } *ids;
    struct decoration {
        uint32_t at, next; /* word offset of an OpMemberDecorate; index of the next one, 0: none */
    } *decorations;
    struct member *members; /* of the struct that is being measured */
    size_t functions;       /* where they begin; no type comes after that */
};

static uint64_t sum(uint64_t a, uint64_t b) {
    return __builtin_add_overflow(a, b, &a) ? UINT64_MAX : a;
}

static uint64_t product(uint64_t a, uint64_t b) {
    return __builtin_mul_overflow(a, b, &a) ? UINT64_MAX : a;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static struct size size_of(const struct measure *m, uint32_t id) {
    return id < m->module->bound ? m->ids[id].size : (struct size){0};
}

/* -- decorations ------------------------------------------------------------------------------ */

static void decorate(struct measure *m) {
    uint32_t count = 0;
    for (size_t i = 5; i < m->functions; i += bhi_spv_length(&m->module->code[i])) {
        const uint32_t *at = &m->module->code[i];
        if (bhi_spv_op(at) == SpvOpDecorate && at[2] == SpvDecorationArrayStride) {
            m->ids[at[1]].stride = at[3] > m->ids[at[1]].stride ? at[3] : m->ids[at[1]].stride;
        } else if (bhi_spv_op(at) == SpvOpDecorate && at[2] == SpvDecorationBlock) {
            m->ids[at[1]].block = true;
        } else if (bhi_spv_op(at) == SpvOpMemberDecorate) {
            m->decorations[++count] = (struct decoration){(uint32_t)i, m->ids[at[1]].first};
            m->ids[at[1]].first = count;
        }
    }
}

/* If a member is decorated twice, a driver may use either decoration: the larger one counts. */
static void find_members(const struct measure *m, const uint32_t *type) {
    const size_t count = bhi_spv_length(type) - 2;
    for (size_t i = 0; i < count; i++) {
        m->members[i] = (struct member){0};
    }
    for (uint32_t k = m->ids[type[1]].first; k != 0; k = m->decorations[k].next) {
        const uint32_t *at = &m->module->code[m->decorations[k].at];
        if (at[2] >= count) {
            continue;
        }
        struct member *member = &m->members[at[2]];
        if (at[3] == SpvDecorationOffset) {
            member->placed = true;
            member->offset = at[4] > member->offset ? at[4] : member->offset;
        } else if (at[3] == SpvDecorationMatrixStride) {
            member->stride = at[4] > member->stride ? at[4] : member->stride;
        } else if (at[3] == SpvDecorationRowMajor) {
            member->by_row = true;
        }
    }
}

/* -- types ------------------------------------------------------------------------------------ */

/* Returns the bytes of a matrix, or of an array of matrices, which has the stride of its member. */
static uint64_t matrix_laid(const struct measure *m, uint32_t type, const struct member *member) {
    const uint32_t *at = bhi_module_definition(m->module, type);
    uint64_t before = 0; /* bytes of the array before its last element */
    for (uint64_t count; at && bhi_spv_op(at) == SpvOpTypeArray;
         at = bhi_module_definition(m->module, at[2])) {
        if (bhi_module_constant(m->module, at[3], &count) && count > 0) {
            before = sum(before, product(m->ids[at[1]].stride, count - 1));
        }
    }
    if (!at || bhi_spv_op(at) != SpvOpTypeMatrix || member->stride == 0) {
        return size_of(m, type).laid;
    }
    const uint32_t *column = bhi_module_definition(m->module, at[2]);
    const uint64_t columns = at[3], rows = column[3], unit = size_of(m, column[2]).packed;
    return sum(before, member->by_row ? member->stride * (rows - 1) + columns * unit
                                      : member->stride * (columns - 1) + rows * unit);
}

static struct size struct_size(const struct measure *m, const uint32_t *at) {
    struct size size = {0};
    find_members(m, at);
    for (size_t i = 2; i < bhi_spv_length(at); i++) {
        const struct member *member = &m->members[i - 2];
        const uint64_t offset = member->placed ? member->offset : size.laid;
        size.packed = sum(size.packed, size_of(m, at[i]).packed);
        size.laid = larger(size.laid, sum(offset, matrix_laid(m, at[i], member)));
    }
    return size;
}

static struct size measure_type(const struct measure *m, const uint32_t *at) {
    struct size size = {0};
    uint64_t count;
    switch (bhi_spv_op(at)) {
    case SpvOpTypeInt:
    case SpvOpTypeFloat:
        size.packed = size.laid = at[2] / 8;
        break;
    case SpvOpTypeBool:
        size.packed = size.laid = 1;
        break;
    case SpvOpTypeVector:
    case SpvOpTypeMatrix:
        size.packed = product(size_of(m, at[2]).packed, at[3]);
        size.laid = size.packed;
        break;
    case SpvOpTypeArray:
        if (bhi_module_constant(m->module, at[3], &count) && count > 0) {
            const struct size unit = size_of(m, at[2]);
            const uint64_t stride = m->ids[at[1]].stride != 0 ? m->ids[at[1]].stride : unit.laid;
            size.packed = product(unit.packed, count);
            size.laid = sum(product(stride, count - 1), unit.laid);
        }
        break;
    case SpvOpTypeStruct:
        size = struct_size(m, at);
        break;
    default:
        break;
    }
    return size;
}

/* -- variables -------------------------------------------------------------------------------- */

static uint64_t add_up(const struct measure *m) {
    uint64_t apart = 0, shared = 0;
    for (uint32_t id = 1; id < m->module->bound; id++) {
        const uint32_t *at = bhi_module_definition(m->module, id);
        if (!at || bhi_spv_op(at) != SpvOpVariable || at[3] != SpvStorageClassWorkgroup ||
            (m->module->uses[id] == 0 && bhi_spv_length(at) <= 4)) {
            continue; /* a driver drops unused variables, except those with an initialiser */
        }
        const uint32_t *pointer = bhi_module_definition(m->module, at[1]);
        const uint32_t type = pointer ? pointer[3] : 0;
        if (type < m->module->bound && m->ids[type].block) {
            shared = larger(shared, size_of(m, type).laid);
        } else {
            apart = sum(apart, size_of(m, type).packed);
        }
    }
    return sum(apart, shared);
}

/* Allocates all memory of the walk; *out_any says whether the module has workgroup memory. */
static bool prepare(struct measure *m, bool *out_any) {
    const struct bhi_module *module = m->module;
    size_t decorations = 1, members = 1;
    *out_any = false;
    for (m->functions = 5; m->functions < module->words;) {
        const uint32_t *at = &module->code[m->functions];
        if (bhi_spv_op(at) == SpvOpFunction) {
            break;
        }
        decorations += bhi_spv_op(at) == SpvOpMemberDecorate;
        if (bhi_spv_op(at) == SpvOpTypeStruct && bhi_spv_length(at) > members) {
            members = bhi_spv_length(at);
        }
        *out_any |= bhi_spv_op(at) == SpvOpVariable && at[3] == SpvStorageClassWorkgroup;
        m->functions += bhi_spv_length(at);
    }
    if (!*out_any) {
        return true;
    }
    m->ids = calloc(module->bound, sizeof *m->ids);
    m->decorations = calloc(decorations, sizeof *m->decorations);
    m->members = calloc(members, sizeof *m->members);
    return m->ids && m->decorations && m->members;
}

bool bhi_module_shared_bytes(const struct bhi_module *module, uint64_t *out_bytes,
                             struct bhi_error *error) {
    struct measure m = {.module = module};
    bool any, good = prepare(&m, &any);
    *out_bytes = 0;
    if (!good) {
        BHI_ERROR(error, BH_REASON_HOST_MEMORY, NULL, .text = "a reflection");
    } else if (any) {
        decorate(&m);
        for (size_t i = 5; i < m.functions; i += bhi_spv_length(&module->code[i])) {
            const uint32_t *at = &module->code[i];
            const SpvOp op = bhi_spv_op(at);
            if (op >= SpvOpTypeVoid && op <= SpvOpTypeFunction && at[1] < module->bound) {
                m.ids[at[1]].size = measure_type(&m, at);
            }
        }
        *out_bytes = add_up(&m);
    }
    free(m.ids);
    free(m.decorations);
    free(m.members);
    return good;
}
