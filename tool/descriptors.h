/* How many descriptors this process may have. */
#ifndef BHI_TOOL_DESCRIPTORS_H
#define BHI_TOOL_DESCRIPTORS_H

#include <stdint.h>

/* Raises the soft limit to |wanted|, or to the hard one where that is lower; one that is higher
 * stays. Returns what it is then; UINT64_MAX: not known, or there is none. */
uint64_t bhi_descriptors_raise(uint64_t wanted);

#endif
