#include "tool/descriptors.h"

#include <sys/resource.h>

#include "base/fd_free.h"
#include "tool/complain.h"

uint64_t bhi_descriptors_raise(uint64_t wanted) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return UINT64_MAX;
    }
    const struct rlimit before = limit;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    }
    if (limit.rlim_cur != before.rlim_cur && setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        limit = before;
    }
    return limit.rlim_cur;
}

bool bhi_descriptors_make_room(const char *command, const char *what, uint32_t needed) {
    uint64_t limit = bhi_descriptors_raise(needed), before;
    uint32_t left;
    do { /* open descriptors can be above a limit that was lowered, so one step may not be enough */
        before = limit;
        left = bhi_fd_count_free(needed);
        limit = bhi_descriptors_raise(before + (needed - left));
    } while (limit > before);
    if (left >= needed) {
        return true;
    }
    bhi_complain(command,
                 "%s needs %u free file descriptors, but only %u of %llu are free: raise the "
                 "limit (ulimit -n), or close some",
                 what, needed, left, (unsigned long long)limit);
    return false;
}
