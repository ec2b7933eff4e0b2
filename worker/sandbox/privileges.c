/* Capabilities, no_new_privs, dumpable: afterwards a worker has no privileges. */
#include "worker/sandbox/sandbox.h"

#include <errno.h>
#include <linux/securebits.h>
#include <sys/capability.h>
#include <sys/prctl.h>

int bhi_sandbox_capabilities(struct bhi_error *failure) {
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                               SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                               SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) != 0) {
        return BHI_ERROR(failure, BH_REASON_STEP, "lock the securebits", .sys_errno = errno);
    }
    /* Tries all numbers up to the first that this kernel does not know. */
    for (unsigned long cap = 0; cap < 64; cap++) {
        int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
        if (has < 0) {
            break;
        }
        if (has == 1 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) {
            return BHI_ERROR(failure, BH_REASON_STEP, "drop a capability from the bounding set",
                             .value = cap, .sys_errno = errno);
        }
    }
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
        return BHI_ERROR(failure, BH_REASON_STEP, "clear the ambient capabilities",
                         .sys_errno = errno);
    }
    cap_t none = cap_init();
    if (!none) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "allocate a capability set",
                         .sys_errno = errno);
    }
    int r = cap_set_proc(none) == 0 ? 0 : errno;
    cap_free(none);
    if (r != 0) {
        return BHI_ERROR(failure, BH_REASON_STEP, "drop the capabilities", .sys_errno = r);
    }
    return 0;
}

int bhi_sandbox_no_new_privs(struct bhi_error *failure) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return BHI_ERROR(failure, BH_REASON_STEP, "set no_new_privs", .sys_errno = errno);
    }
    return 0;
}

int bhi_sandbox_not_dumpable(struct bhi_error *failure) {
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        return BHI_ERROR(failure, BH_REASON_STEP, "clear dumpable", .sys_errno = errno);
    }
    return 0;
}
