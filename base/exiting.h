#ifndef BHI_BASE_EXITING_H
#define BHI_BASE_EXITING_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns true if process |pid|, which is not reaped yet, is exiting, or if /proc does not tell.
 * Its pidfd becomes readable later: when the kernel has closed all of its descriptors. */
bool bhi_is_exiting(pid_t pid);

#endif
