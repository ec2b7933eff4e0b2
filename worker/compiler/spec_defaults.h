/* Specialization constants that nobody has set: a module means its defaults mostly as something to
 * replace, and a workgroup of one invocation has all the loops for itself. */
#ifndef BHI_WORKER_COMPILER_SPEC_DEFAULTS_H
#define BHI_WORKER_COMPILER_SPEC_DEFAULTS_H

#include "worker/spirv/module.h"

/* Writes "specialization constant 0 (local size x) was left at its default 1", or as a list of the
 * first few, sizes first. Returns how many there are; of none |out| is empty. */
uint32_t bhi_spec_defaults(const struct bhi_module *module, char *out, size_t size);

#endif
