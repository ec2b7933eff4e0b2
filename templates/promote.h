/* The types of results, as in NumPy 2 (NEP 50). */
#ifndef BHI_TEMPLATES_PROMOTE_H
#define BHI_TEMPLATES_PROMOTE_H

#include <stdbool.h>

#include "formats/dtype.h"

bool bhi_dtype_is_float(bh_dtype dtype);
bool bhi_dtype_is_signed(bh_dtype dtype);  /* an integer, i8 to i64 */
bool bhi_dtype_is_integer(bh_dtype dtype); /* not bool */

/* The type of an operation on two arrays. */
bh_dtype bhi_promote(bh_dtype a, bh_dtype b);
/* The type of an operation on an array and a number in the text, which is weak. */
bh_dtype bhi_promote_integer(bh_dtype array);
bh_dtype bhi_promote_real(bh_dtype array);
/* The type in which a function such as sin computes. */
bh_dtype bhi_promote_function(bh_dtype array);

#endif
