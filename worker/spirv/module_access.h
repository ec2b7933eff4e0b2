/* What the functions reachable from an entry point do with module-scope variables. */
#ifndef BHI_MODULE_ACCESS_H
#define BHI_MODULE_ACCESS_H

#include "module.h"

/* Fills in module->uses. Returns false when out of memory. */
bool bhi_module_find_accesses(struct bhi_module *module);

#endif
