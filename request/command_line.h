/* Makes a request from a command line of `bulkhead run` or `bulkhead eval`. */
#ifndef BHI_REQUEST_COMMAND_LINE_H
#define BHI_REQUEST_COMMAND_LINE_H

#include "request/run.h"
#include "tool/args.h"

/* Parses all arguments of `bulkhead run`. On failure nothing is owned, and the complaint names the
 * argument. */
bool bhi_run_request_parse(const struct bhi_args *args, struct bhi_run_request *out_request,
                           struct bhi_complaint *complaint);
/* Takes one option; if the request is an expression, one of eval's options. The complaint names it.
 * After a failure the request must still be freed. */
bool bhi_run_parse_option(struct bhi_run_request *request, const struct bhi_arg *item,
                          struct bhi_complaint *complaint);
/* Checks that standard input and standard output each serve one purpose. */
bool bhi_run_check_streams(const struct bhi_run_request *request, struct bhi_complaint *complaint);

#endif
