#include "base/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Before Linux 6.11 a signal undoes a whole fallocate on a memfd. In one piece it would never
 * finish in a host whose timer ticks faster than the memory can be allocated. */
#define RESERVE_STEP  (UINT64_C(16) << 20)
#define RESERVE_LEAST (UINT64_C(64) << 10)

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

uint64_t bhi_page_round(uint64_t bytes) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (bytes == 0) {
        return page;
    }
    if (bytes > UINT64_MAX - (page - 1)) {
        return 0;
    }
    return (bytes + page - 1) & ~(page - 1);
}

int bhi_memfd_create(const char *name, uint64_t bytes, int leave_open) {
    uint64_t size = bhi_page_round(bytes);
    if (size == 0 || size > (uint64_t)LLONG_MAX) {
        return -EFBIG;
    }
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) { /* before Linux 6.3 */
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    }
    if (fd < 0) {
        return -errno;
    }
    int error = ftruncate(fd, (off_t)size) ? -errno : 0;
    if (!error && !leave_open) {
        error = bhi_memfd_seal(fd, SEALS);
    }
    if (error) {
        close(fd);
        return error;
    }
    return fd;
}

int bhi_memfd_seal(int fd, int seals) {
    return fcntl(fd, F_ADD_SEALS, seals) ? -errno : 0;
}

int bhi_memfd_verify(int fd, uint64_t bytes, int extra_seals) {
    uint64_t size = bhi_page_round(bytes);
    if (size == 0) {
        return -EINVAL;
    }
    /* The seals are checked first: only a sealed file keeps its size. Files of hugetlbfs and tmpfs
     * answer, but lack SHRINK, GROW and SEAL; any other file that is no memfd answers EINVAL. */
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0) {
        return errno == EINVAL ? -EPERM : -errno;
    }
    if ((seals & (SEALS | extra_seals)) != (SEALS | extra_seals)) {
        return -EPERM;
    }
    struct stat st;
    if (fstat(fd, &st)) {
        return -errno;
    }
    /* The file's maker may have cut off the end of the last page; every page must be there. */
    if (!S_ISREG(st.st_mode) || st.st_size <= 0 || (uint64_t)st.st_size < bytes ||
        bhi_page_round((uint64_t)st.st_size) != size) {
        return -EINVAL;
    }
    return 0;
}

int bhi_memfd_protect(int fd) {
    struct stat st;
    if (fstat(fd, &st)) {
        return -errno;
    }
    /* The bits that make it executable may be sealed. Then they stay. */
    mode_t mode = (st.st_mode & 0555) | 0444;
    return (st.st_mode & 07777) == mode || fchmod(fd, mode) == 0 ? 0 : -errno;
}

int bhi_memfd_reserve(int fd, uint64_t bytes) {
    uint64_t at = 0, step = RESERVE_STEP;
    while (at < bytes) {
        const uint64_t count = bytes - at < step ? bytes - at : step;
        if (fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)count) == 0) {
            at += count;
        } else if (errno != EINTR) {
            return -errno;
        } else if (step > RESERVE_LEAST) {
            step /= 2;
        }
    }
    return 0;
}

int bhi_memfd_read_only(int fd) {
    char path[32];
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", fd);
    int copy = open(path, O_RDONLY | O_CLOEXEC);
    return copy >= 0 ? copy : -errno;
}
