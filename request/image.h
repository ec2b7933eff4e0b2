/* What a request must say, and may not, if its kernel is an image for CUDA: it has neither types nor
 * names, and says nothing of its block. */
#ifndef BHI_REQUEST_IMAGE_H
#define BHI_REQUEST_IMAGE_H

#include "request/run.h"

/* Checks what can be checked without a worker. The complaint names an option. An image's kernel is then
 * named after its entry point, as CUDA's tools name it: a file can have several. */
bool bhi_run_check_image(struct bhi_run_request *request, struct bhi_complaint *complaint);
/* Checks that each binding is a parameter that can be a pointer, and that the push bytes are those of
 * all other parameters. */
bool bhi_run_match_parameters(const struct bhi_run_request *request, const bh_kernel_info *info,
                              struct bhi_complaint *complaint);

#endif
