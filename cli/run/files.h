/* The files of a run: opens its inputs, and checks that its outputs can be written. */
#ifndef BHI_CLI_RUN_FILES_H
#define BHI_CLI_RUN_FILES_H

#include "request/run.h"

/* Where standard input is an input, reads its header. */
bool bhi_run_open_stdin(struct bhi_run_request *request, struct bhi_complaint *complaint);
/* Proves that every output can be written. After the inputs: --inout takes its shape from them. */
bool bhi_run_open_outputs(struct bhi_run_request *request, struct bhi_complaint *complaint);
/* Makes the buffers that there are not yet, and reads standard input into the one that is for it.
 * Returns an exit status. */
int bhi_run_fill_buffers(struct bhi_run_request *request, bh_context *context, bh_stream *stream);
/* Writes every output, then puts each in its place. Returns an exit status. */
int bhi_run_write_outputs(struct bhi_run_request *request);

#endif
