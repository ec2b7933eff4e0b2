/* Builds the index of a module (index.h), and answers questions about it. */
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

/* Value of an integer constant, specialization applied. False: not one, or not computable here. */
bool bhi_module_constant(const struct bhi_module *module, uint32_t id, uint64_t *out_value);
/* Each given constant must have the size of the one that it overrides; ids that the module does
 * not have are ignored, as Vulkan does. */
bool bhi_module_check_constants(const struct bhi_module *module, struct bhi_error *error);
bool bhi_module_local_size(const struct bhi_module *module, uint32_t out_size[3],
                           struct bhi_error *error);
/* At least how many bytes of workgroup memory the entry point uses, or the module initialises:
 * tightly packed, UINT64_MAX where there are more. Variables with an explicit layout (Block) share
 * their memory: the largest counts, with its padding. Returns false with *error when out of memory.
 */
bool bhi_module_shared_bytes(const struct bhi_module *module, uint64_t *out_bytes,
                             struct bhi_error *error);
/* bhi_access bits of what functions reachable from the entry point do with variable |id|, and
 * BHI_MODULE_USED when they name it at all: workgroup memory that they do not name is not theirs to
 * read. */
uint32_t bhi_module_uses(const struct bhi_module *module, uint32_t id);

#endif
