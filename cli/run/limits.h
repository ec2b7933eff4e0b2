/* Checks the sizes of arrays against the largest range that the device binds, before any file is
 * loaded. */
#ifndef BHI_CLI_RUN_LIMITS_H
#define BHI_CLI_RUN_LIMITS_H

#include "cli/run/steps.h"

/* Vulkan's least maxStorageBufferRange: up to it nobody need be asked. */
#define BHI_RANGE_OF_ALL (UINT64_C(128) << 20)

/* Asks a worker about the device of the run, once. Returns an exit status. Where there is no such
 * device |run->limits| stays empty: who makes the stream says so. */
int bhi_run_fetch_limits(struct bhi_run *run);
/* Refuses what is larger than the device binds: arrays that are known, and files by their size.
 * Returns an exit status. */
int bhi_run_check_sizes(struct bhi_run *run);

#endif
