/* How many descriptors this process may have. */
#ifndef BHI_TOOL_DESCRIPTORS_H
#define BHI_TOOL_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* Raises the soft limit to |wanted|, or to the hard limit if that is lower. Never lowers it.
 * Returns the soft limit; UINT64_MAX: unknown or unlimited. */
uint64_t bhi_descriptors_raise(uint64_t wanted);

/* Raises the soft limit until |needed| descriptors are free, at most to the hard limit. If fewer
 * are free then, prints a message of |command| that |what| needs them, and returns false. */
bool bhi_descriptors_make_room(const char *command, const char *what, uint32_t needed);

#endif
