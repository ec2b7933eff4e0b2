/* Reads a module or a source, and what a source includes. */
#ifndef BHI_REQUEST_CODE_H
#define BHI_REQUEST_CODE_H

#include <stddef.h>

#include "formats/complaint.h"

/* All of the file (or standard input) in memory, with a NUL behind it; *out_code is the caller's to
 * free. *out_errno is 0 where a refusal has nothing to do with the system. */
bool bhi_code_read(const char *path, void **out_code, size_t *out_size, int *out_errno,
                   struct bhi_complaint *complaint);

#endif
