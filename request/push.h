/* Compares push constants that are given in order with those that the kernel declares. */
#ifndef BHI_REQUEST_PUSH_H
#define BHI_REQUEST_PUSH_H

#include "request/types.h"

/* The layout of a member: |count| elements of an array or columns of a matrix (else 1), each of
 * |width| numbers. */
struct bhi_push_shape {
    bh_dtype dtype;
    uint32_t count, width;
};

/* Parses the type of a member: "f32", "f32x3", "f32x2x2", "u32[4]", "f32x4[2]". Returns false if it
 * is something else, or does not fit into BHI_MAX_PUSH bytes. */
bool bhi_push_shape(const struct bhi_kernel_member *member, struct bhi_push_shape *out);
/* Returns the offset of number |index| of element |element|. */
uint32_t bhi_push_place(const struct bhi_kernel_member *member, uint32_t element, uint32_t index);

/* Gives values without a type (":2") the type of their member, and refuses values whose type
 * differs from the member's. At an offset without a number or vector any type is allowed. Integers
 * of the same width may differ in the sign if the value is valid for both. Also refuses a kernel
 * with push constants to which no values are given. |option| is the option that takes the bytes as
 * they are. The complaint begins with the argument, with |dashes| before its option. A second call
 * changes nothing. */
bool bhi_run_match_order(struct bhi_run_request *request, const struct bhi_kernel_types *types,
                         const char *dashes, const char *option, struct bhi_complaint *complaint);

#endif
