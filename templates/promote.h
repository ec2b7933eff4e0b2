/* The types of results: NumPy's, as NEP 50 has them (NumPy 2). */
#ifndef BHI_TEMPLATES_PROMOTE_H
#define BHI_TEMPLATES_PROMOTE_H

#include <stdbool.h>

#include "formats/dtype.h"

bool bhi_dtype_is_float(enum bhi_dtype dtype);
bool bhi_dtype_is_signed(enum bhi_dtype dtype);  /* an integer, i8 to i64 */
bool bhi_dtype_is_integer(enum bhi_dtype dtype); /* not bool */

/* Of two arrays. */
enum bhi_dtype bhi_promote(enum bhi_dtype a, enum bhi_dtype b);
/* Of an array and a number that is written in the text: such a number is weak. */
enum bhi_dtype bhi_promote_integer(enum bhi_dtype array);
enum bhi_dtype bhi_promote_real(enum bhi_dtype array);
/* What a function such as sin computes in. */
enum bhi_dtype bhi_promote_function(enum bhi_dtype array);

#endif
