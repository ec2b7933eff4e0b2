/* Chooses where arrays are, from the GPU device nodes of this machine. If there is no such node,
 * every driver runs on the processor and uses host memory, so no worker need be asked. */
#ifndef BHI_TOOL_GPU_NODES_H
#define BHI_TOOL_GPU_NODES_H

#include <bulkhead/bulkhead.h>

/* Returns BH_MEMORY_HOST if |memory| is BH_MEMORY_AUTO and this machine has no GPU; otherwise
 * |memory|. */
bh_memory bhi_memory_here(bh_memory memory);

/* Copying a smaller array to a GPU takes longer than its kernels save there. */
#define BHI_MEMORY_PAYS (1ull << 20)

/* Where an array of |bytes| bytes is: with BH_MEMORY_AUTO a small array is in host memory. */
static inline bh_memory bhi_memory_for(bh_memory memory, uint64_t bytes) {
    return memory == BH_MEMORY_AUTO && bytes < BHI_MEMORY_PAYS ? BH_MEMORY_HOST : memory;
}
/* As bhi_memory_for, for an array from a file. The file's size is the upper bound of the array's
 * size. */
bh_memory bhi_memory_for_file(bh_memory memory, const char *path);

#endif
