#include "worker/process/memory_holder.h"

#include "base/futex.h"
#include "worker/faults/faults.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES 16384
#define START_NS    (2ull * 1000000000)

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif

enum { STARTING, KEEPING, FAILED };
static _Atomic int state; /* the memory holder writes it; the worker waits for it */
static const struct rlimit processor_time = {1, 1}; /* seconds */
static bool taken_over; /* for a test: acts as it would for a compromised worker */

/* Where a filter is already installed (in a container), the kernel refuses strict mode (EINVAL).
 * This filter, installed as one more, allows the same calls. */
static bool filtered(void) {
    struct sock_filter allowed[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 0, 6),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {sizeof allowed / sizeof allowed[0], allowed};
    return syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/* Runs with the worker's memory, and with its errno, which nobody reads at that time. It uses
 * nothing of libc except system calls. */
static int keep(void *argument) {
    const int pipe_end = (int)(ptrdiff_t)argument;
    char byte;
    syscall(SYS_prctl, PR_SET_NAME, "bh-holder", 0, 0, 0);
    /* The signal must be set before anybody can learn of the worker's death: see memory_holder.h.
     * If the worker has died already, no driver code ever ran, and the end of the pipe suffices. */
    if (syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGSTOP, 0, 0, 0) != 0) {
        atomic_store(&state, FAILED);
        syscall(SYS_exit, 0);
    }
    /* The host does not know its pid. If it is compromised, it can use this much processor time. */
    syscall(SYS_prlimit64, 0, RLIMIT_CPU, &processor_time, NULL);
    if (pipe_end > 0) {
        syscall(SYS_close_range, 0u, (unsigned)pipe_end - 1, 0u);
    }
    syscall(SYS_close_range, (unsigned)pipe_end + 1, ~0u, 0u);
    const bool walled =
        syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) == 0 || filtered();
    atomic_store(&state, walled ? KEEPING : FAILED);
    while (taken_over) {
        atomic_signal_fence(memory_order_seq_cst);
    }
    if (walled) {
        syscall(SYS_read, pipe_end, &byte, (size_t)1); /* returns 0 when the other end is closed */
    }
    syscall(SYS_exit, 0);
    return 0;
}

int bhi_memory_holder_start(int pipe_end, struct bhi_error *failure) {
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "make a stack for the memory holder",
                         .sys_errno = errno);
    }
    taken_over = BHI_FAULT_FAILS("holder");
    /* It is a child of the worker, so that it gets the worker's death signal. The zygote inherits
     * and reaps it. */
    if (clone(keep, stack + STACK_BYTES, CLONE_VM, (void *)(ptrdiff_t)pipe_end) < 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "make the memory holder",
                         .sys_errno = errno);
    }
    /* No code of the driver may run before the memory holder has its own sandbox. */
    const uint64_t end_ns = bhi_deadline_ns(START_NS);
    while (atomic_load(&state) == STARTING && bhi_now_ns() < end_ns) {
        sched_yield();
    }
    return atomic_load(&state) == KEEPING
               ? 0
               : BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "start the memory holder",
                           .sys_errno = ETIMEDOUT);
}
