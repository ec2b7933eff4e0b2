/* How much memory this machine has available. */
#ifndef BHI_TOOL_MEMORY_H
#define BHI_TOOL_MEMORY_H

#include <stdint.h>

/* What can be had without swapping, in bytes; UINT64_MAX: not known. */
uint64_t bhi_memory_unused(void);

#endif
