/* Push constants that are given in order, held against the members that the kernel declares. */
#ifndef BHI_CLI_RUN_PUSH_H
#define BHI_CLI_RUN_PUSH_H

#include "run_types.h"

/* A number, or a vector "f32x3" of them. Others lie in memory as their decorations say, which is
 * not known here: false. */
bool bhi_push_type(const char *type, enum bhi_dtype *out_dtype, uint32_t *out_width);

/* Gives values without a type (":2") that of the member they are for, and refuses those that have
 * another than the member; where no number and no vector lies anything goes. Integers of a width
 * may differ in the sign while the value is one of both. Refuses, too, that none are given to a
 * kernel that has some. |option| takes the bytes as they are. The complaint begins with the
 * argument, |dashes| before its option. Doing it again changes nothing. */
bool bhi_run_match_order(struct bhi_run_request *request, const struct bhi_kernel_types *types,
                         const char *dashes, const char *option, struct bhi_complaint *complaint);

#endif
