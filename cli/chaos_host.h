/* bulkhead chaos --attach and --run: faults for a host that is not ours. */
#ifndef BHI_CLI_CHAOS_HOST_H
#define BHI_CLI_CHAOS_HOST_H

#include "tool/args.h"

/* Returns true if the command line asks for a host, or names a part of that. */
bool bhi_chaos_host_asked(const struct bhi_args *args);
/* Returns an exit status; with --run, that of the command. */
int bhi_chaos_host_main(const struct bhi_args *args);

#endif
