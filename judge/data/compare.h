/* Compares an output with the expected one, element by element. */
#ifndef BHI_JUDGE_DATA_COMPARE_H
#define BHI_JUDGE_DATA_COMPARE_H

#include <bulkhead/array.h>
#include <stdbool.h>
#include <stdint.h>

enum bhi_tolerance_kind {
    BHI_TOLERANCE_EXACT, /* the same bytes, except that NaNs are all alike */
    BHI_TOLERANCE_NEAR,  /* |got - expected| <= absolute + relative * |expected| */
    BHI_TOLERANCE_ULP,   /* at most |ulp| steps from one number of the type to the next */
};

/* What is done where the expected element is NaN. A NaN where a number is expected is always
 * wrong. */
enum bhi_nan {
    BHI_NAN_REFUSED, /* there must be none: the task is refused before any candidate */
    BHI_NAN_EQUAL,   /* a NaN is expected, whatever its bits */
    BHI_NAN_ANY,     /* any value is right */
};

/* What is compared with what. */
enum bhi_comparison {
    BHI_BY_ELEMENTS,
    BHI_BY_MULTISET, /* in any order */
    BHI_BY_NORM,     /* the whole: the relative error in the L2 norm is at most |relative| */
    BHI_BY_CHECK,    /* by the program: not here */
};

struct bhi_tolerance {
    enum bhi_comparison by;
    enum bhi_tolerance_kind kind;
    double absolute, relative;
    uint64_t ulp;
    enum bhi_nan nan;
};

enum { BHI_ELEMENT_TEXT = 40 };

/* How an output differs. The texts are of the first element that is wrong. */
struct bhi_difference {
    uint64_t wrong; /* elements; 0: all are right */
    uint64_t index; /* in C order, of the first wrong one; likewise what follows */
    char expected[BHI_ELEMENT_TEXT], got[BHI_ELEMENT_TEXT];
    uint64_t ulp; /* between them, of integers their difference; UINT64_MAX: one is NaN */
    double error; /* by norm: the relative error; infinite: there is none */
};

void bhi_compare(bh_dtype dtype, uint64_t count, const void *expected, const void *got,
                 const struct bhi_tolerance *tolerance, struct bhi_difference *out);

/* Is one element right, for itself? */
bool bhi_is_right(bh_dtype dtype, uint64_t expected, uint64_t got,
                  const struct bhi_tolerance *tolerance);

/* Finds the first NaN. Returns false if there is none. */
bool bhi_find_nan(bh_dtype dtype, uint64_t count, const void *elements, uint64_t *out_index);

/* Is none an infinity or a NaN? */
bool bhi_is_finite(bh_dtype dtype, uint64_t count, const void *elements);

/* The steps between two elements; UINT64_MAX if one is NaN. Both zeros are one number. */
uint64_t bhi_ulp_between(bh_dtype dtype, uint64_t a, uint64_t b);

/* The value of an element, rounded to a double. */
double bhi_element_value(bh_dtype dtype, uint64_t bits);

/* Writes the element with |bits| so that reading the text gives the same bits; of a NaN and a bool
 * the word. Returns |out|. */
const char *bhi_element_text(bh_dtype dtype, uint64_t bits, char out[BHI_ELEMENT_TEXT]);

#endif
