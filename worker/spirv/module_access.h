/* What the functions reachable from an entry point do with module-scope variables. */
#ifndef BHI_WORKER_SPIRV_MODULE_ACCESS_H
#define BHI_WORKER_SPIRV_MODULE_ACCESS_H

#include "worker/spirv/index.h"
#include <stdbool.h>

/* Fills in module->uses. Returns false when out of memory. */
bool bhi_module_find_accesses(struct bhi_module *module);

#endif
