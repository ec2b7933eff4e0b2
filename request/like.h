/* Outputs of the type and shape of an input: --out 1=y.npy:like:0. */
#ifndef BHI_REQUEST_LIKE_H
#define BHI_REQUEST_LIKE_H

#include "request/run.h"

/* FILE and B of "FILE:like:B" or "FILE:like B"; false where |files| is neither. *out_path_length is
 * how long FILE is. */
bool bhi_run_split_like(const char *files, size_t *out_path_length, const char **out_like);
/* Once all bindings are there: finds the input that each B stands for, which is named as there. The
 * complaint begins with the argument. */
bool bhi_run_find_likes(struct bhi_run_request *request, const char *dashes,
                        struct bhi_complaint *complaint);
/* Once the inputs' headers are known: gives the outputs their arrays. */
bool bhi_run_take_likes(struct bhi_run_request *request, const char *dashes,
                        struct bhi_complaint *complaint);

#endif
