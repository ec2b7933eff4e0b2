/* Checks a job's expression, kernel and inputs as far as possible without a worker. */
#ifndef BHI_BATCH_RUNNER_CONTENT_H
#define BHI_BATCH_RUNNER_CONTENT_H

#include "request/eval.h"
#include "request/language.h"

/* Does the expression parse, read only given inputs, and assign all outputs? Opens no file. */
bool bhi_content_expression(const struct bhi_eval_request *eval, struct bhi_complaint *complaint);
/* Is the file in a language that can be compiled here? |given| is the one in the job's line. A file
 * that is no source must begin as SPIR-V does. */
bool bhi_content_kernel(const char *path, enum bhi_language given, struct bhi_complaint *complaint);
/* Is the file a .npy (|tensor| is NULL), or a .safetensors with |tensor|? Checks headers and sizes,
 * but no elements. */
bool bhi_content_input(const char *path, const char *tensor, struct bhi_complaint *complaint);

#endif
