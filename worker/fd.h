/* Small owners: what is declared with these is closed when it goes out of scope. */
#ifndef BHI_WORKER_FD_H
#define BHI_WORKER_FD_H

#include <unistd.h>

static inline void bhi_fd_close(int *fd) {
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}
#define BHI_AUTO_FD __attribute__((cleanup(bhi_fd_close))) int

#endif
