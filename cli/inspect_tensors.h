/* `bulkhead inspect` of a .npy or .safetensors file: lists its arrays. */
#ifndef BHI_CLI_INSPECT_TENSORS_H
#define BHI_CLI_INSPECT_TENSORS_H

#include <stdbool.h>

#include "tool/args.h"

/* Is |path|, by its name, an array file? Also true for other kinds of array files, which are
 * refused later. */
bool bhi_inspect_is_array(const char *path);
/* Returns an exit status. */
int bhi_inspect_tensors(const struct bhi_args *args);

#endif
