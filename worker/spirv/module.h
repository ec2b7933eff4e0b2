/* Makes the index of a module (index.h), and answers questions about it. */
#ifndef BHI_WORKER_SPIRV_MODULE_H
#define BHI_WORKER_SPIRV_MODULE_H

#include "worker/backend.h"
#include "worker/spirv/index.h"

/* Indexes |code|, which must outlive the module. |constants| override specialization constants.
 * Returns false with *error. */
bool bhi_module_init(struct bhi_module *module, const uint32_t *code, size_t words,
                     const char *entry, const struct bhi_spec_constant *constants,
                     uint32_t constant_count, struct bhi_error *error);
void bhi_module_fini(struct bhi_module *module);

/* Computes the value of an integer constant, after specialization. Returns false if |id| is none,
 * or the value cannot be computed here. */
bool bhi_module_constant(const struct bhi_module *module, uint32_t id, uint64_t *out_value);
/* Each given constant must have the size of the one that it overrides. Ids that the module does not
 * have are ignored, as in Vulkan. */
bool bhi_module_check_constants(const struct bhi_module *module, struct bhi_error *error);
bool bhi_module_local_size(const struct bhi_module *module, uint32_t out_size[3],
                           struct bhi_error *error);
/* Computes a lower bound of the bytes of workgroup memory that the entry point uses or the module
 * initialises: tightly packed, UINT64_MAX if there are more. Variables with an explicit layout
 * (Block) share their memory: the largest one counts, with its padding. Returns false with *error
 * when out of memory. */
bool bhi_module_shared_bytes(const struct bhi_module *module, uint64_t *out_bytes,
                             struct bhi_error *error);
/* Returns the bhi_access bits of what functions reachable from the entry point do with variable
 * |id|, and BHI_MODULE_USED if they name it at all. They must not read workgroup memory that they
 * do not name. */
uint32_t bhi_module_uses(const struct bhi_module *module, uint32_t id);

#endif
