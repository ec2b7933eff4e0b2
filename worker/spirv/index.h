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

#define BHI_MODULE_USED 4u

#endif
