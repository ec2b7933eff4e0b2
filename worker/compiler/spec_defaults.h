/* Specialization constants that were given no value. A module's default is mostly meant to be
 * replaced: for example, a workgroup of one invocation runs all the loops alone. */
#ifndef BHI_WORKER_COMPILER_SPEC_DEFAULTS_H
#define BHI_WORKER_COMPILER_SPEC_DEFAULTS_H

#include "worker/spirv/module.h"

/* Writes "specialization constant 0 (local size x) was left at its default 1", or a list of the
 * first few, sizes first. Returns how many there are. If there are none, |out| is empty. |hidden| is
 * not counted: 1 + the SpecId of a constant that is not the caller's; 0: none. */
uint32_t bhi_spec_defaults(const struct bhi_module *module, uint32_t hidden, char *out,
                           size_t size);

#endif
