#include "tool/descriptors.h"

#include <sys/resource.h>

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
