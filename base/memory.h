/* How much memory this machine has available. */
#ifndef BHI_BASE_MEMORY_H
#define BHI_BASE_MEMORY_H

#include <stdint.h>

/* The bytes that this machine can allocate without swapping; UINT64_MAX: unknown. */
uint64_t bhi_memory_unused(void);

#endif
