/* Debug information that the validator refuses although it changes no result: compilers are newer
 * than the validator of a Debian release. */
#ifndef BHI_WORKER_SPIRV_DEBUG_INFO_H
#define BHI_WORKER_SPIRV_DEBUG_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is |name| a set of instructions that no driver executes? */
bool bhi_debug_info_import(const char *name);

/* Makes the source language of OpSource unknown, if it is newer than HLSL, and removes the
 * instructions of sets that no driver executes (NonSemantic.*). Nothing is assumed about the words:
 * what is not a module is left as it is. Returns how many words there are now. */
size_t bhi_debug_info_normalise(uint32_t *code, size_t words);

#endif
