/* An index of the instructions of a SPIR-V module, for questions that SPIRV-Cross does not answer.
 * Only for modules that have passed the validator: the walk needs well-formed instructions. */
#ifndef BHI_WORKER_SPIRV_INDEX_H
#define BHI_WORKER_SPIRV_INDEX_H

#include <spirv/unified1/spirv.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_spec_constant;

struct bhi_module {
    const uint32_t *code;
    size_t words;
    uint32_t bound;           /* all ids are smaller */
    uint32_t *definitions;    /* by id: word offset of the instruction that defines it; 0: none */
    uint32_t *spec_ids;       /* by id: its SpecId + 1; 0: none */
    uint8_t *uses;            /* by id of a variable: its bhi_access bits and BHI_MODULE_USED */
    uint32_t entry;           /* word offset of the OpEntryPoint */
    uint32_t work_group_size; /* id decorated BuiltIn WorkgroupSize; 0: none */
    const struct bhi_spec_constant *constants;
    uint32_t constant_count;
};

#define BHI_MODULE_USED     4u
#define BHI_MODULE_MEASURED 8u /* its length is asked for */

static inline SpvOp bhi_spv_op(const uint32_t *at) {
    return (SpvOp)(at[0] & SpvOpCodeMask);
}
static inline size_t bhi_spv_length(const uint32_t *at) {
    return at[0] >> SpvWordCountShift;
}
/* Returns the instruction after |at| (NULL: the first one), or NULL where the functions begin. */
static inline const uint32_t *bhi_spv_next(const uint32_t *code, size_t words, const uint32_t *at) {
    at = at ? at + bhi_spv_length(at) : code + 5;
    return at < code + words && bhi_spv_op(at) != SpvOpFunction ? at : NULL;
}
/* Returns the instruction that defines |id|, or NULL. */
static inline const uint32_t *bhi_module_definition(const struct bhi_module *module, uint32_t id) {
    return id < module->bound && module->definitions[id] != 0
               ? &module->code[module->definitions[id]]
               : NULL;
}
/* |value| as an integer of |bits| bits, unsigned or signed. */
static inline uint64_t bhi_int_truncate(uint64_t value, uint32_t bits) {
    return bits >= 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}
static inline int64_t bhi_int_signed(uint64_t value, uint32_t bits) {
    if (bits < 64 && (value >> (bits - 1) & 1) != 0) {
        value |= ~UINT64_C(0) << bits;
    }
    return (int64_t)value;
}

#endif
