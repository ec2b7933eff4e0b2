/* Outputs of the type and shape of an input: --out 1=y.npy:like:0. */
#ifndef BHI_REQUEST_LIKE_H
#define BHI_REQUEST_LIKE_H

#include "request/run.h"

/* Once all bindings are there: finds the input that each B stands for, which is named as there. The
 * complaint begins with the argument. */
bool bhi_run_find_likes(struct bhi_run_request *request, const char *dashes,
                        struct bhi_complaint *complaint);
/* Once the inputs' headers are known: gives the outputs their arrays. */
bool bhi_run_take_likes(struct bhi_run_request *request, const char *dashes,
                        struct bhi_complaint *complaint);

#endif
