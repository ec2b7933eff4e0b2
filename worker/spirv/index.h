/* A SPIR-V module as an index of its instructions: what SPIRV-Cross does not tell. Only for
 * modules that have passed the validator: the walk relies on well-formed instructions. */
#ifndef BHI_WORKER_SPIRV_INDEX_H
#define BHI_WORKER_SPIRV_INDEX_H

#include <spirv/unified1/spirv.h>
#include <stddef.h>
#include <stdint.h>

struct bhi_spec_constant;

struct bhi_module {
    const uint32_t *code;
    size_t words;
    uint32_t bound;           /* ids are below it */
    uint32_t *definitions;    /* word offset of the instruction that defines an id; 0: none */
    uint32_t *spec_ids;       /* id to SpecId + 1; 0: none */
    uint8_t *uses;            /* id of a variable to bhi_access bits plus BHI_MODULE_USED */
    uint32_t entry;           /* word offset of the OpEntryPoint */
    uint32_t work_group_size; /* id decorated BuiltIn WorkgroupSize; 0: none */
    const struct bhi_spec_constant *constants;
    uint32_t constant_count;
};

#define BHI_MODULE_USED 4u

#endif
