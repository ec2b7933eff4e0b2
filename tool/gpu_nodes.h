/* What --memory means on this machine, as far as its device nodes tell. A driver that runs on the
 * processor needs none of a GPU, so where there are none every device has the host's memory, and
 * nobody need wait to hear it. */
#ifndef BHI_TOOL_GPU_NODES_H
#define BHI_TOOL_GPU_NODES_H

#include <bulkhead/bulkhead.h>

/* HOST for AUTO where there is no GPU; else |memory|. */
bh_memory bhi_memory_here(bh_memory memory);

#endif
