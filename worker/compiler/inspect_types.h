/* Names, types and layout of what a validated module declares. */
#ifndef BHI_WORKER_COMPILER_INSPECT_TYPES_H
#define BHI_WORKER_COMPILER_INSPECT_TYPES_H

#include "ipc/inspection.h"
#include "worker/spirv/module.h"

/* The instruction that defines |id|; NULL: none. */
const uint32_t *bhi_inspect_definition(const struct bhi_module *module, uint32_t id);
/* OpName of |id|, cleaned; "" where there is none. */
void bhi_inspect_name(const struct bhi_module *module, uint32_t id, char out[BHI_INSPECT_NAME]);
/* The operand of a decoration of |id|. */
bool bhi_inspect_decoration(const struct bhi_module *module, uint32_t id, uint32_t decoration,
                            uint32_t *out);
/* "f32", "u32x2", "f32x4[16]", "{u32, f32[]}"; cut with "..." where it is longer. */
void bhi_inspect_type(const struct bhi_module *module, uint32_t type, char out[BHI_INSPECT_NAME]);
/* What a variable points to; 0: nothing. */
uint32_t bhi_inspect_pointee(const struct bhi_module *module, const uint32_t *variable);
/* What the struct |type| is made of, down to the numbers, vectors and matrices of structs in it:
 * "a.b", "p[1].x". Returns how many there are, at most BHI_INSPECT_MEMBERS. */
uint32_t bhi_inspect_members(const struct bhi_module *module, uint32_t type,
                             struct bhi_inspected_member *out);

#endif
