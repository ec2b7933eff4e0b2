#ifndef BHI_BASE_EXITING_H
#define BHI_BASE_EXITING_H

#include "base/proc_place.h"

/* Returns true if the first thread of process |pid|, which is not reaped yet, is exiting, or if
 * /proc does not tell. The process may go on without it. */
bool bhi_first_thread_is_exiting(pid_t pid);
/* The same, of all threads. Where the end of a process has closed a socket, all of its threads are
 * exiting. Its pidfd becomes readable later: when the kernel has closed all of its descriptors. */
bool bhi_is_exiting(const struct bhi_proc_place *place);

#endif
