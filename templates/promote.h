/* The types of results: NumPy's, as NEP 50 has them (NumPy 2). */
#ifndef BHI_TEMPLATES_PROMOTE_H
#define BHI_TEMPLATES_PROMOTE_H

#include <stdbool.h>

#include "formats/dtype.h"

bool bhi_dtype_is_float(bh_dtype dtype);
bool bhi_dtype_is_signed(bh_dtype dtype);  /* an integer, i8 to i64 */
bool bhi_dtype_is_integer(bh_dtype dtype); /* not bool */

/* Of two arrays. */
bh_dtype bhi_promote(bh_dtype a, bh_dtype b);
/* Of an array and a number that is written in the text: such a number is weak. */
bh_dtype bhi_promote_integer(bh_dtype array);
bh_dtype bhi_promote_real(bh_dtype array);
/* What a function such as sin computes in. */
bh_dtype bhi_promote_function(bh_dtype array);

#endif
