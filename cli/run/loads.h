/* The inputs of a run that come from files: the library's loader parses and reads them. */
#ifndef BHI_CLI_RUN_LOADS_H
#define BHI_CLI_RUN_LOADS_H

#include "request/run.h"

/* Makes the buffers of the files that are named, and fills in their arrays. Standard input is not
 * among them. Returns an exit status. */
int bhi_run_load_inputs(struct bhi_run_request *request, bh_context *context, bh_stream *stream);
/* Waits until all of them are there. Shows on a terminal how far it is, where that takes long.
 * Returns an exit status; where that is POISONED, *out_verdict is still to be told. */
int bhi_run_await_inputs(struct bhi_run_request *request, bh_verdict *out_verdict);

/* When the context has been destroyed: what a signal has interrupted ends then. */
void bhi_run_end_loads(struct bhi_run_request *request);

#endif
