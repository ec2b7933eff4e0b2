/* --status, --cancel and --logs of `bulkhead batch`: what others run, seen from outside. */
#ifndef BHI_CLI_BATCH_SHARDS_H
#define BHI_CLI_BATCH_SHARDS_H

#include "tool/args.h"

/* Is one of these options given? */
bool bhi_batch_shards_asked(const struct bhi_args *args);
/* Does what they ask. Returns an exit status. */
int bhi_batch_shards(const struct bhi_args *args);

#endif
