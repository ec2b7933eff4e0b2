#include "supervisor/context/room.h"
#include "base/detail.h"
#include "base/fd_free.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define ADVISED 256u /* the limit that the message suggests: a few streams and their buffers */

/* Sets the errno after bhi_fail, which would append its text to a message that needs none. */
static bh_status no_descriptor(bh_detail *detail) {
    if (detail) {
        detail->sys_errno = EMFILE;
    }
    return BH_SYSTEM;
}

bh_status bhi_room_check(const char *call, const char *what, uint32_t need, bh_detail *detail) {
    const uint32_t left = bhi_fd_count_free(need);
    struct rlimit limit = {0};
    if (left >= need) {
        return BH_OK;
    }
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    bhi_fail(detail, BH_SYSTEM, 0,
             "%s: %s needs %u free file descriptors, but only %u of %llu are free: raise the "
             "limit (ulimit -n), or close some",
             call, what, need, left, (unsigned long long)limit.rlim_cur);
    return no_descriptor(detail);
}

bh_status bhi_room_check_process(const char *call, bh_detail *detail) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= BHI_ROOM_PROCESS) {
        return BH_OK;
    }
    bhi_fail(detail, BH_SYSTEM, 0,
             "%s: a worker needs %u file descriptors, but the hard limit is %llu: raise it "
             "(ulimit -n %u)",
             call, BHI_ROOM_PROCESS, (unsigned long long)limit.rlim_max, ADVISED);
    return no_descriptor(detail);
}

bh_status bhi_room_check_files(const char *call, uint64_t need, bh_detail *detail) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= need) {
        return BH_OK;
    }
    return bhi_fail(detail, BH_SYSTEM, EFBIG, "%s: a worker and the host share %llu KiB", call,
                    (unsigned long long)(need >> 10));
}

void bhi_room_hold(struct bhi_room_held *held, int any_fd) {
    while (held->count < BHI_ROOM_HELD) {
        const int fd = (fcntl)(any_fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0) {
            return;
        }
        held->fds[held->count++] = fd;
    }
}

void bhi_room_give(struct bhi_room_held *held) {
    while (held->count > 0) {
        close(held->fds[--held->count]);
    }
}

bool bhi_room_is_short(const bh_detail *detail) {
    return detail->sys_errno == EMFILE || detail->sys_errno == ENFILE;
}
