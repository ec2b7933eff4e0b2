#include "worker/sandbox/sandbox.h"

int bhi_sandbox_enter(struct bhi_sandbox *sandbox, struct bhi_error *failure) {
    int r;
    bool landlock = false;
    bool memory = false;
    /* Capabilities come first: dropping the bounding set needs CAP_SETPCAP, and nothing later needs
     * a capability. Landlock then needs no_new_privs, because CAP_SYS_ADMIN is gone. */
    if ((r = bhi_sandbox_capabilities(failure)) != 0) {
        return r;
    }
    sandbox->layers |= BHI_LAYER_BIT(CAPABILITIES);
    if ((r = bhi_sandbox_no_new_privs(failure)) != 0) {
        return r;
    }
    sandbox->layers |= BHI_LAYER_BIT(NO_NEW_PRIVS);
    if ((r = bhi_sandbox_not_dumpable(failure)) != 0) {
        return r;
    }
    sandbox->layers |= BHI_LAYER_BIT(NOT_DUMPABLE);
    if ((r = bhi_sandbox_landlock(sandbox->driver, sandbox->node, &landlock, failure)) != 0) {
        return r;
    }
    if (landlock) {
        sandbox->layers |= BHI_LAYER_BIT(LANDLOCK);
    }
    if ((r = bhi_sandbox_rlimits(sandbox->driver, sandbox->memory_limit, &memory, failure)) != 0) {
        return r;
    }
    sandbox->layers |= BHI_LAYER_BIT(RLIMITS);
    if (memory) {
        sandbox->layers |= BHI_LAYER_BIT(MEMORY_RLIMIT);
    }
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
