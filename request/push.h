/* Compares push constants that are given in order with the members that the kernel declares. */
#ifndef BHI_REQUEST_PUSH_H
#define BHI_REQUEST_PUSH_H

#include "request/types.h"

/* How a member's numbers lie: |count| elements of an array or columns of a matrix (1 of others),
 * each of |width| numbers. */
struct bhi_push_shape {
    bh_dtype dtype;
    uint32_t count, width;
};

/* Of all that lies in BHI_MAX_PUSH bytes: "f32", "f32x3", "f32x2x2", "u32[4]", "f32x4[2]". False:
 * it is something else, or larger. */
bool bhi_push_shape(const struct bhi_kernel_member *member, struct bhi_push_shape *out);
/* Where number |index| of element |element| lies. */
uint32_t bhi_push_place(const struct bhi_kernel_member *member, uint32_t element, uint32_t index);

/* Gives values without a type (":2") that of the member they are for, and refuses those that have
 * another than the member; where no number and no vector lies anything goes. Integers of a width
 * may differ in the sign while the value is one of both. Refuses, too, that none are given to a
 * kernel that has some. |option| takes the bytes as they are. The complaint begins with the
 * argument, |dashes| before its option. Doing it again changes nothing. */
bool bhi_run_match_order(struct bhi_run_request *request, const struct bhi_kernel_types *types,
                         const char *dashes, const char *option, struct bhi_complaint *complaint);

#endif
