/* Reads a module or a source, and what a source includes. */
#ifndef BHI_REQUEST_CODE_H
#define BHI_REQUEST_CODE_H

#include <stddef.h>

#include "formats/complaint.h"

/* Reads all of the file (or standard input) into memory, with a NUL after it. The caller frees
 * *out_code. *out_errno is 0 if no system call was the reason of a refusal. */
bool bhi_code_read(const char *path, void **out_code, size_t *out_size, int *out_errno,
                   struct bhi_complaint *complaint);

#endif
