/* The files of a run: opens its inputs, and checks that its outputs can be written. */
#ifndef BHI_CLI_RUN_FILES_H
#define BHI_CLI_RUN_FILES_H

#include "request/run.h"

/* Reads the header of standard input, if that is an input. */
bool bhi_run_open_stdin(struct bhi_run_request *request, struct bhi_complaint *complaint);
/* Checks that every output can be written. Call it after the inputs' headers are known: --inout
 * takes its shape from them. */
bool bhi_run_open_outputs(struct bhi_run_request *request, struct bhi_complaint *complaint);
/* Makes the missing buffers, and reads standard input into its buffer. Returns an exit status. */
int bhi_run_fill_buffers(struct bhi_run_request *request, bh_context *context, bh_stream *stream);
/* Writes all outputs, then puts them in their places. Returns an exit status. */
int bhi_run_write_outputs(struct bhi_run_request *request);

#endif
