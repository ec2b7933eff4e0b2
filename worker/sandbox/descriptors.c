/* A worker keeps the descriptors that it was given, and none that its parents had open. */
#include "worker/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#define FIRST 3

int bhi_sandbox_descriptors(int *fds, size_t count, struct bhi_error *failure) {
    /* All move above the target range first, so that moving one down never overwrites another. */
    for (size_t i = 0; i < count; i++) {
        int high = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST + (int)count);
        if (high < 0) {
            return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "move a descriptor",
                             .value = (uint64_t)fds[i], .sys_errno = errno);
        }
        fds[i] = high;
    }
    for (size_t i = 0; i < count; i++) {
        int target = FIRST + (int)i;
        if (dup3(fds[i], target, O_CLOEXEC) < 0) {
            return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "move a descriptor",
                             .value = (uint64_t)fds[i], .sys_errno = errno);
        }
        fds[i] = target;
    }
    if (close_range(FIRST + (unsigned)count, ~0u, 0) != 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "close foreign descriptors",
                         .sys_errno = errno);
    }
    return 0;
}
