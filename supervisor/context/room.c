#include "supervisor/context/room.h"
#include "base/detail.h"
#include "base/fd_free.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

bh_status bhi_room_check(const char *call, const char *what, uint32_t need, bh_detail *detail) {
    const uint32_t left = bhi_fd_count_free(need);
    if (left >= need) {
        return BH_OK;
    }
    return BHI_FAIL(detail, call, BH_REASON_DESCRIPTORS, .value = need, .limit = left, .text = what,
                    .sys_errno = EMFILE);
}

bh_status bhi_room_check_process(const char *call, bh_detail *detail) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= BHI_ROOM_PROCESS) {
        return BH_OK;
    }
    return BHI_FAIL(detail, call, BH_REASON_HARD_LIMIT, .value = BHI_ROOM_PROCESS,
                    .limit = limit.rlim_max, .sys_errno = EMFILE);
}

bh_status bhi_room_check_files(const char *call, uint64_t need, bh_detail *detail) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= need) {
        return BH_OK;
    }
    return BHI_FAIL(detail, call, BH_REASON_SHARED_FILES, .value = need, .sys_errno = EFBIG);
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
