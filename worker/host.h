/* What the processes share that the host starts, the warden and the opener: to carry nothing of the
 * host's but its privileges. */
#ifndef BHI_WORKER_HOST_H
#define BHI_WORKER_HOST_H

#include <stdbool.h>

/* The socket to the host. */
#define BHI_HOST_SOCKET 3

/* Forgets the host's signals, group, folder and soft limit of descriptors, and closes all but the
 * standard streams and the socket. False: descriptor 3 is none, so there is nobody to tell. */
bool bhi_host_forget(void);

#endif
