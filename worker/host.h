/* What the two processes have in common that the host starts, the warden and the opener. They keep
 * the host's privileges, and nothing else of the host. */
#ifndef BHI_WORKER_HOST_H
#define BHI_WORKER_HOST_H

#include "worker/error.h"
#include <stdbool.h>

/* The descriptor of the socket to the host. */
#define BHI_HOST_SOCKET 3

/* Resets the host's signals, group, folder and soft limit of descriptors, and closes all
 * descriptors but the standard streams and the socket. Returns false if descriptor 3 is no socket;
 * then nobody can be told. */
bool bhi_host_forget(void);
/* Opens /dev/null as 0, 1 and (except in sanitizer builds, which report there) 2. Returns 0, or -errno
 * and fills |failure|. */
int bhi_host_drop_streams(struct bhi_error *failure);

#endif
