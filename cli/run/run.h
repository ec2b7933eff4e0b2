/* `bulkhead run`, from its command line to its exit status. */
#ifndef BHI_CLI_RUN_RUN_H
#define BHI_CLI_RUN_RUN_H

#include "tool/args.h"

int bhi_run_main(const struct bhi_args *args);

#endif
