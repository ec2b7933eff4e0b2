/* The inputs of a run that come from files; the library's loader parses and reads them. */
#ifndef BHI_CLI_RUN_LOADS_H
#define BHI_CLI_RUN_LOADS_H

#include "request/run.h"

/* Makes the buffers of the inputs from files, and fills in their arrays; standard input is handled
 * elsewhere. Returns an exit status. */
int bhi_run_load_inputs(struct bhi_run_request *request, bh_context *context, bh_stream *stream);
/* Waits until all of them are loaded. Shows a progress bar on a terminal if this takes long.
 * Returns an exit status; with POISONED the caller must report *out_verdict. */
int bhi_run_await_inputs(struct bhi_run_request *request, bh_verdict *out_verdict);

/* Ends loads that a signal has interrupted. Call it after the context was destroyed. */
void bhi_run_end_loads(struct bhi_run_request *request);

#endif
