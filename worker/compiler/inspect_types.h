/* Names, types and layout of what a validated module declares. */
#ifndef BHI_WORKER_COMPILER_INSPECT_TYPES_H
#define BHI_WORKER_COMPILER_INSPECT_TYPES_H

#include "ipc/inspection.h"
#include "worker/spirv/module.h"

/* Writes the OpName of |id|, cleaned; "" if it has none. */
void bhi_inspect_name(const struct bhi_module *module, uint32_t id, char out[BHI_INSPECT_NAME]);
/* Reads the operand of a decoration of |id|. Returns false if |id| is not decorated so. */
bool bhi_inspect_decoration(const struct bhi_module *module, uint32_t id, uint32_t decoration,
                            uint32_t *out);
/* Returns the axis of the workgroup's size that |id| is, or -1. */
int bhi_inspect_axis(const struct bhi_module *module, uint32_t id);
/* Writes the type as "f32", "u32x2", "f32x4[16]", "{u32, f32[]}"; cut with "..." if it is
 * longer. */
void bhi_inspect_type(const struct bhi_module *module, uint32_t type, char out[BHI_INSPECT_NAME]);
/* Returns the type that a variable points to, or 0. */
uint32_t bhi_inspect_pointee(const struct bhi_module *module, const uint32_t *variable);
/* Lists the parts of the struct |type| ("a.b", "p[1].x"), down to numbers, vectors and matrices.
 * Returns how many there are, at most BHI_INSPECT_MEMBERS. */
uint32_t bhi_inspect_members(const struct bhi_module *module, uint32_t type,
                             struct bhi_inspected_member *out);

#endif
