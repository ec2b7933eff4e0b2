/* Makes the library's bindings, push constants and options from a request, for `run` and `batch`
 * alike. */
#ifndef BHI_REQUEST_LAUNCH_H
#define BHI_REQUEST_LAUNCH_H

#include "request/kernel_file.h"
#include "request/run.h"

/* What a launch binds; the buffers are there. |out_bindings| has room for BHI_MAX_BINDINGS. */
void bhi_run_request_bindings(const struct bhi_run_request *request, bh_binding *out_bindings);
/* The source that the library is given, but for its log. */
void bhi_kernel_file_source(const struct bhi_kernel_file *file, bh_glsl_source *out_source);
/* What the kernel is made with. */
void bhi_run_request_kernel_options(const struct bhi_run_request *request,
                                    bh_kernel_options *out_options);

#endif
