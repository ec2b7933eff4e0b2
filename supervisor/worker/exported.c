#include "supervisor/worker/exported.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

bool bhi_exported_is_memory(int fd, uint64_t bytes) {
    struct statx what;
    struct statfs where;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE, &what) != 0) {
        return false;
    }
    switch (what.stx_mode & S_IFMT) {
    case S_IFCHR:
        return true;
    case S_IFREG:
        return what.stx_size >= bytes;
    case 0: /* an anonymous inode: a dma-buf, but also an eventfd, an epoll instance, … */
        return fstatfs(fd, &where) == 0 && (uint64_t)where.f_type == DMA_BUF_MAGIC &&
               what.stx_size >= bytes;
    default:
        return false;
    }
}
