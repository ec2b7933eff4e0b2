/* Whether this machine has device nodes of a GPU. A driver that runs on the processor needs none, so
 * where there are none every device has the host's memory, and nobody need wait to hear it. */
#ifndef BHI_TOOL_GPU_NODES_H
#define BHI_TOOL_GPU_NODES_H

#include <stdbool.h>

bool bhi_has_gpu_nodes(void);

#endif
