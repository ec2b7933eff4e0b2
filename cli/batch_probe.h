/* A batch of which only the probe has been submitted: what --status, --logs and --cancel do. */
#ifndef BHI_CLI_BATCH_PROBE_H
#define BHI_CLI_BATCH_PROBE_H

#include <stdbool.h>

#include "tool/args.h"

/* Has the folder |state| a probe, and no shards yet? */
bool bhi_batch_probe_waits(const char *state);
/* Has it a probe, beside the shards of an earlier submission? Says so on standard error. */
void bhi_batch_probe_note(const char *state);
/* --status. With --follow it returns when there is an array (*out_go_on: the shards can be
 * followed). Returns an exit status, as do the others. */
int bhi_batch_probe_status(const char *state, const struct bhi_args *args, bool *out_go_on);
int bhi_batch_probe_logs(const char *state, const struct bhi_args *args);
int bhi_batch_probe_cancel(const char *state);

#endif
