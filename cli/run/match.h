/* Compares the bindings and push constants of a command line with what the kernel declares. */
#ifndef BHI_CLI_RUN_MATCH_H
#define BHI_CLI_RUN_MATCH_H

#include "request/run.h"

/* Refuses a missing binding, one that the kernel does not have, an output that the kernel only
 * reads, an input that it only writes, and push constants of another size. */
bool bhi_run_match(const struct bhi_run_request *request, const bh_kernel_info *info,
                   struct bhi_complaint *complaint);

#endif
