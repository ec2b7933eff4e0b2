#include "base/fd_free.h"

#include <fcntl.h>
#include <sys/resource.h>

/* Numbers above that no table of descriptors reaches by default (fs.nr_open). */
#define MOST_NUMBERS (1u << 20)

uint32_t bhi_fd_count_free(uint32_t wanted) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return wanted;
    }
    const uint32_t numbers =
        limit.rlim_cur < MOST_NUMBERS ? (uint32_t)limit.rlim_cur : MOST_NUMBERS;
    uint32_t left = 0;
    /* From the top down: high numbers are rarely taken. The name in parentheses calls the function
     * and not a macro, so the fault tests do not let this call fail. */
    for (uint32_t fd = numbers; fd > 0 && left < wanted; fd--) {
        left += (fcntl)((int)fd - 1, F_GETFD) < 0;
    }
    return left;
}
