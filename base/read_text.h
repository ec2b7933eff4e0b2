#ifndef BHI_BASE_READ_TEXT_H
#define BHI_BASE_READ_TEXT_H

#include <stddef.h>
#include <sys/types.h>

/* Reads a small file, such as one of /proc: its first |capacity| - 1 bytes, and a NUL behind them.
 * Returns their number; or -errno, with what was read before in |out|. */
ssize_t bhi_read_text(int folder, const char *path, char *out, size_t capacity);

#endif
