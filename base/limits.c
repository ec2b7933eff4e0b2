#include "base/limits.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

static uint64_t limit_of(__rlimit_resource_t resource) {
    struct rlimit limit;
    return getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX
                                                                               : limit.rlim_cur;
}

uint64_t bhi_limit_of_address_space(void) {
    return limit_of(RLIMIT_AS);
}

const char *bhi_limit_address_space(char out[BHI_LIMIT_TEXT]) {
    const uint64_t limit = bhi_limit_of_address_space();
    out[0] = 0;
    if (limit != UINT64_MAX) {
        snprintf(out, BHI_LIMIT_TEXT,
                 "; the address space is limited to %llu MiB: raise that (ulimit -v)",
                 (unsigned long long)(limit >> 20));
    }
    return out;
}

const char *bhi_limit_named(int sys_errno, char out[BHI_LIMIT_TEXT]) {
    const uint64_t files = limit_of(RLIMIT_FSIZE);
    out[0] = 0;
    if (sys_errno == ENOMEM || sys_errno == EAGAIN) {
        return bhi_limit_address_space(out);
    }
    if (sys_errno == EFBIG && files != UINT64_MAX) {
        snprintf(out, BHI_LIMIT_TEXT,
                 "; files and shared memory are limited to %llu KiB: raise that (ulimit -f)",
                 (unsigned long long)(files >> 10));
    }
    return out;
}
