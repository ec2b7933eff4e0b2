/* Compares the sizes of arrays with the largest range that the device binds, before a file is
 * loaded. */
#ifndef BHI_CLI_RUN_LIMITS_H
#define BHI_CLI_RUN_LIMITS_H

#include "cli/run/steps.h"

/* Vulkan's smallest maxStorageBufferRange: up to this no device need be asked. */
#define BHI_RANGE_OF_ALL (UINT64_C(128) << 20)

/* Asks a worker once about the run's device. Returns an exit status. If there is no such device,
 * |run->limits| stays empty; making the stream reports it. */
int bhi_run_fetch_limits(struct bhi_run *run);
/* Refuses arrays that are larger than what the device binds: known arrays, and files by their size.
 * Returns an exit status. */
int bhi_run_check_sizes(struct bhi_run *run);

#endif
