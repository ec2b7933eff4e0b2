/* What the ending of an output's name says about its content. */
#ifndef BHI_REQUEST_ENDING_H
#define BHI_REQUEST_ENDING_H

#include <stdbool.h>

#include "tool/text.h"

/* Outputs are .npy files: refuses a |path| whose ending may be another format's name. No format's
 * name is one of digits alone, or of more than five characters that is not a known format's
 * (mktemp's tmp.AbC123XyZ0); the dot that a hidden file begins with begins no ending. */
bool bhi_ending_check(const char *path, struct bhi_complaint *complaint);

#endif
