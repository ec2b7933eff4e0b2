/* Makes the library's bindings and options from a request, for `run` and `batch` alike. */
#ifndef BHI_REQUEST_LAUNCH_H
#define BHI_REQUEST_LAUNCH_H

#include "request/run.h"

/* Fills in what a launch binds; the buffers must exist. |out_bindings| has room for
 * BHI_MAX_BINDINGS. */
void bhi_run_request_bindings(const struct bhi_run_request *request, bh_binding *out_bindings);
/* Fills in the options of the kernel. */
void bhi_run_request_kernel_options(const struct bhi_run_request *request,
                                    bh_kernel_options *out_options);

#endif
