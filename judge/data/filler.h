/* What an input is filled with: random numbers that a seed decides, the same on every machine. */
#ifndef BHI_JUDGE_DATA_FILLER_H
#define BHI_JUDGE_DATA_FILLER_H

#include <bulkhead/array.h>
#include <stdint.h>

enum bhi_filler_kind {
    BHI_FILLER_UNIFORM,  /* real numbers from |low| to |high| */
    BHI_FILLER_NORMAL,   /* of mean |low| and standard deviation |high| */
    BHI_FILLER_INTEGERS, /* whole numbers from |first| to |last| */
    BHI_FILLER_BITS,     /* random bits: any value that the type has */
    BHI_FILLER_FILE,     /* not random: the content of a file */
};

struct bhi_filler {
    enum bhi_filler_kind kind;
    double low, high;
    int64_t first, last;
    double special; /* how many of the elements are special values instead, from 0 to 1 */
};

/* Which array of which trial is filled: arrays of one seed and other numbers are independent. */
struct bhi_filler_place {
    uint64_t seed;
    uint32_t trial; /* 0 to 65535 */
    uint32_t array; /* 0 to 65535 */
};

/* Fills |count| elements of |dtype|. A value that |dtype| does not hold becomes the nearest that it
 * holds, also an infinity. Special values of a float are NaN, both infinities, both zeros, the smallest and the
 * largest denormal and normal numbers of both signs, 1 and the number before it; those of an
 * integer are its least and its greatest value, 0, 1 and, if it has a sign, -1. Of a bool both. */
void bhi_filler_fill(const struct bhi_filler *filler, struct bhi_filler_place place, bh_dtype dtype,
                     uint64_t count, void *out);

/* Fills in |count| elements of such an array, from |first|, a multiple of 512, on. */
void bhi_filler_fill_part(const struct bhi_filler *filler, struct bhi_filler_place place,
                          bh_dtype dtype, uint64_t first, uint64_t count, void *out);

/* Fills |size| bytes with random bits. */
void bhi_filler_noise(struct bhi_filler_place place, void *out, uint64_t size);

#endif
