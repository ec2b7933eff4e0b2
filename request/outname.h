/* What the ending of an output's file name says about its format. */
#ifndef BHI_REQUEST_OUTNAME_H
#define BHI_REQUEST_OUTNAME_H

#include <stdbool.h>

#include "tool/text.h"

/* Outputs are files of |format|, such as "npy": refuses a |path| whose ending may be the name of
 * another one. An ending is no format's name if it has only digits, or if it has more than five
 * characters and is not a known format's (as in mktemp's tmp.AbC123XyZ0). The dot at the beginning
 * of a hidden file's name begins no ending. */
bool bhi_outname_check(const char *path, const char *format, struct bhi_complaint *complaint);

#endif
