#include "worker/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#define FIRST 3

/* A worker keeps the descriptors that it was given, and none that its parents had open. */
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

int bhi_sandbox_enter(struct bhi_sandbox *sandbox, struct bhi_error *failure) {
    bool landlock = false, memory = false;
    /* Capabilities come first: dropping the bounding set needs CAP_SETPCAP, and nothing later needs
     * a capability. Landlock then needs no_new_privs, because CAP_SYS_ADMIN is gone. */
    int r;
    if ((r = bhi_sandbox_capabilities(failure)) != 0 ||
        (r = bhi_sandbox_no_new_privs(failure)) != 0 ||
        (r = bhi_sandbox_not_dumpable(failure)) != 0 ||
        (r = bhi_sandbox_landlock(sandbox->driver, sandbox->node, &landlock, failure)) != 0 ||
        (r = bhi_sandbox_rlimits(sandbox->driver, sandbox->memory_limit, &memory, failure)) != 0) {
        return r;
    }
    sandbox->layers |= BHI_LAYER_BIT(CAPABILITIES) | BHI_LAYER_BIT(NO_NEW_PRIVS) |
                       BHI_LAYER_BIT(NOT_DUMPABLE) | BHI_LAYER_BIT(RLIMITS) |
                       (landlock ? BHI_LAYER_BIT(LANDLOCK) : 0) |
                       (memory ? BHI_LAYER_BIT(MEMORY_RLIMIT) : 0);
    return 0;
}

int bhi_sandbox_filter(struct bhi_sandbox *sandbox, enum bhi_filter filter,
                       struct bhi_error *failure) {
    int r = bhi_sandbox_seccomp(filter, sandbox->driver, failure);
    if (r == 0) {
        sandbox->layers |= filter == BHI_FILTER_START ? BHI_LAYER_BIT(SECCOMP_START)
                                                      : BHI_LAYER_BIT(SECCOMP_STEADY);
    }
    return r;
}
