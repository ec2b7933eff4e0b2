/* Checks a job's expression, kernel and inputs as far as no worker is needed. */
#ifndef BHI_BATCH_RUNNER_CONTENT_H
#define BHI_BATCH_RUNNER_CONTENT_H

#include "request/eval.h"
#include "request/language.h"

/* Whether the expression parses, reads inputs that are given, and assigns the outputs. Touches no
 * file. */
bool bhi_content_expression(const struct bhi_eval_request *eval, struct bhi_complaint *complaint);
/* Whether the file is in a language that is compiled here; |given|: as the job says. What is no
 * source has to begin as SPIR-V does. */
bool bhi_content_kernel(const char *path, enum bhi_language given, struct bhi_complaint *complaint);
/* Whether the file is a .npy (|tensor| is NULL), or a .safetensors that has |tensor|: headers and
 * sizes are looked at, elements are not. */
bool bhi_content_input(const char *path, const char *tensor, struct bhi_complaint *complaint);

#endif
