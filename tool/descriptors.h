/* How many descriptors this process may have. */
#ifndef BHI_TOOL_DESCRIPTORS_H
#define BHI_TOOL_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* Raises the soft limit to |wanted|, or to the hard one where that is lower; one that is higher
 * stays. Returns what it is then; UINT64_MAX: not known, or there is none. */
uint64_t bhi_descriptors_raise(uint64_t wanted);

/* Raises the soft limit, as far as that is needed and the hard one allows, until |needed| numbers
 * are free. False, and a line on standard error that names the need: fewer are. |what| needs them,
 * of |command|. */
bool bhi_descriptors_make_room(const char *command, const char *what, uint32_t needed);

#endif
