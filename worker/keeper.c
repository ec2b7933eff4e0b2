#include "keeper.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES 16384

/* Shares everything with the worker, also errno: only calls that succeed, and nothing of libc
 * beyond them. */
static int keep(void *argument) {
    const int pipe_end = (int)(ptrdiff_t)argument;
    char byte;
    if (pipe_end > 0) {
        syscall(SYS_close_range, 0u, (unsigned)pipe_end - 1, 0u);
    }
    syscall(SYS_close_range, (unsigned)pipe_end + 1, ~0u, 0u);
    if (syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) == 0) {
        syscall(SYS_read, pipe_end, &byte, (size_t)1); /* ends with 0: nobody writes */
    }
    syscall(SYS_exit, 0);
    return 0;
}

int bhi_keeper_start(int pipe_end, struct bhi_failure *failure) {
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        return bhi_fail(failure, BH_SYSTEM, errno, "no stack for the keeper");
    }
    /* A sibling, not a child: the zygote reaps it, whichever of the two ends first. */
    const int flags = CLONE_VM | CLONE_PARENT;
    if (clone(keep, stack + STACK_BYTES, flags, (void *)(ptrdiff_t)pipe_end) < 0) {
        return bhi_fail(failure, BH_SYSTEM, errno, "cannot make the keeper");
    }
    return 0;
}
