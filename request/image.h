/* What a request must say, and may not, if its kernel is an image for CUDA: it has neither types nor
 * names, and says nothing of its block. */
#ifndef BHI_REQUEST_IMAGE_H
#define BHI_REQUEST_IMAGE_H

#include "request/run.h"

/* Notes what the kernel's file is. A kernel for CUDA is named after its entry point, as CUDA's tools name
 * it: a file can have several. */
void bhi_run_note_language(struct bhi_run_request *request, enum bhi_language language);
/* Checks what can be checked without a worker. |device| is the one that was asked for; NULL: none. The
 * complaint names an option with |dashes|, or without any a key. */
bool bhi_run_check_image(const struct bhi_run_request *request, const char *device,
                         const char *dashes, struct bhi_complaint *complaint);
/* Checks that the device |selector| ("cuda:0", "cuda") runs kernels of this kind. */
bool bhi_run_check_driver(const struct bhi_run_request *request, const char *selector,
                          const char *dashes, struct bhi_complaint *complaint);
/* Checks that each binding is a parameter that can be a pointer, and that the push bytes are those of
 * all other parameters. */
bool bhi_run_match_parameters(const struct bhi_run_request *request, const bh_kernel_info *info,
                              struct bhi_complaint *complaint);

#endif
