/* Where an element of an array is, in words: "Y[2,17]". */
#ifndef BHI_JUDGE_CHECK_POSITION_H
#define BHI_JUDGE_CHECK_POSITION_H

#include "formats/array.h"

enum { BHI_POSITION_TEXT = 256 };

/* Splits |index|, which counts the elements in C order, into one index for each dimension. */
void bhi_position_of(const struct bhi_array *form, uint64_t index, uint64_t out_along[]);
/* |index| counts the elements in C order. Returns |out|. */
const char *bhi_position_text(const char *place, const struct bhi_array *form, uint64_t index,
                              char out[BHI_POSITION_TEXT]);

#endif
