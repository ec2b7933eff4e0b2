/* Built-in variables, of which the guard tells a kernel something else than the driver. */
#ifndef BHI_WORKER_GUARD_BUILTINS_H
#define BHI_WORKER_GUARD_BUILTINS_H

#include "worker/guard/state.h"

/* Does the entry point list |variable|? */
bool bhi_guard_in_interface(const struct bhi_guard *g, uint32_t variable);
/* Makes all reads of |variable| so far reads of a Private variable, which has |name|. Returns that one; the
 * caller fills it at the beginning of the kernel. */
uint32_t bhi_guard_replace_builtin(struct bhi_guard *g, uint32_t variable, const char *name);

#endif
