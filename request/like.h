/* Outputs of the type and shape of an input: --out 1=y.npy:like:0. */
#ifndef BHI_REQUEST_LIKE_H
#define BHI_REQUEST_LIKE_H

#include "request/run.h"

/* Finds the input that each B names, by the name or number with which the input was given. Call it
 * when all bindings are there. The complaint begins with the argument. */
bool bhi_run_find_likes(struct bhi_run_request *request, const char *dashes,
                        struct bhi_complaint *complaint);
/* Gives the outputs their arrays. Call it when the inputs' headers are known. */
bool bhi_run_take_likes(struct bhi_run_request *request, const char *dashes,
                        struct bhi_complaint *complaint);

#endif
