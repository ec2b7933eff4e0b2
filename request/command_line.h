/* A request from a command line, of `bulkhead run` or `bulkhead eval`. */
#ifndef BHI_REQUEST_COMMAND_LINE_H
#define BHI_REQUEST_COMMAND_LINE_H

#include "request/run.h"
#include "tool/args.h"

/* All that `bulkhead run` was asked to do. On failure nothing is owned; the complaint names the
 * argument. */
bool bhi_run_request_parse(const struct bhi_args *args, struct bhi_run_request *out_request,
                           struct bhi_complaint *complaint);
/* Takes one option in, which is one of eval's where the request is an expression. The complaint
 * names it. On failure the request is still to be freed. */
bool bhi_run_parse_option(struct bhi_run_request *request, const struct bhi_arg *item,
                          struct bhi_complaint *complaint);
/* Standard input and standard output serve one purpose each. */
bool bhi_run_check_streams(const struct bhi_run_request *request, struct bhi_complaint *complaint);

#endif
