/* What --memory means on this machine, as far as its device nodes tell. A driver that runs on the
 * processor needs none of a GPU, so where there are none every device has the host's memory, and
 * nobody need wait to hear it. */
#ifndef BHI_TOOL_GPU_NODES_H
#define BHI_TOOL_GPU_NODES_H

#include <bulkhead/bulkhead.h>

/* HOST for AUTO where there is no GPU; else |memory|. */
bh_memory bhi_memory_here(bh_memory memory);

/* An array of fewer bytes costs more to bring to a GPU than its kernels save there. */
#define BHI_MEMORY_PAYS (1ull << 20)

/* Where an array of |bytes| is: with AUTO a small one is in host memory. */
static inline bh_memory bhi_memory_for(bh_memory memory, uint64_t bytes) {
    return memory == BH_MEMORY_AUTO && bytes < BHI_MEMORY_PAYS ? BH_MEMORY_HOST : memory;
}
/* The same of a file's array, of which its size is a bound. */
bh_memory bhi_memory_for_file(bh_memory memory, const char *path);

#endif
