/* Numbers of the descriptors that a worker starts with, and owners that close a descriptor. */
#ifndef BHI_BASE_FD_H
#define BHI_BASE_FD_H

#include <unistd.h>

/* Where bhi_sandbox_descriptors() puts a worker's descriptors. */
#define BHI_FDPASS_DESCRIPTOR        3
#define BHI_DOORBELL_DESCRIPTOR      4
#define BHI_DEVICE_HOLDER_DESCRIPTOR 7 /* closed before anything untrusted runs */

/* What is declared with BHI_AUTO_FD is closed when it goes out of scope. */
static inline void bhi_fd_close(int *fd) {
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* Returns *fd and clears it: the caller closes the descriptor now. */
static inline int bhi_fd_steal(int *fd) {
    const int stolen = *fd;
    *fd = -1;
    return stolen;
}

#define BHI_AUTO_FD __attribute__((cleanup(bhi_fd_close), unused)) int

#endif
