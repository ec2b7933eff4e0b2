/* What a kernel declares, in words; and what of it is not given. */
#ifndef BHI_REQUEST_MISSING_H
#define BHI_REQUEST_MISSING_H

#include "request/types.h"

enum { BHI_WHOLE_BINDING = -1 }; /* in place of an element */
enum { BHI_DECLARED = 208 };

/* Writes "0.1 ('y', storage buffer, read and written)"; for an element of an array of buffers
 * "0.1[2] (…", for the whole array "0.1[] ('y', 3 storage buffers, …". Returns |out|. */
const char *bhi_kernel_type_describe(const struct bhi_kernel_type *type, int64_t element,
                                     char out[BHI_DECLARED]);
/* Returns the declaration of |slot|, or NULL. */
const struct bhi_kernel_type *bhi_kernel_types_find(const struct bhi_kernel_types *types,
                                                    struct bhi_slot slot);
/* Refuses a request that does not give each binding. The complaint names all that are missing, the
 * push constants too if none are given, and a binding that the kernel does not have. |dashes| is
 * "--" for options, "" for the keys of a job. Call it when names are resolved. */
bool bhi_run_check_missing(const struct bhi_run_request *request,
                           const struct bhi_kernel_types *types, const char *dashes,
                           struct bhi_complaint *complaint);

#endif
