/* What a worker may call. The comments in the tables say who needs each call. A call that no rule
 * allows kills the process (SIGSYS). See docs/sandbox.md, "Filters". */
#include "base/fd.h"
#include "worker/sandbox/driver.h"
#include "worker/sandbox/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* PI futexes had many kernel bugs, and nothing here needs them. */
#define FUTEX_FLAGS     (FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)
#define ALLOW_FUTEX(op) BHI_ALLOW1(futex, BHI_BITS(1, 0xffffffffu & ~FUTEX_FLAGS, op))
#define NO_EXEC         BHI_BITS(2, ~(PROT_READ | PROT_WRITE), 0)
/* Memory that no limit counts. Shared pages without a file live on while a part of their mapping is
 * left; MAP_GROWSDOWN pages count as stack; huge pages have a pool of their own. */
#define UNCOUNTED (MAP_GROWSDOWN | MAP_HUGETLB)
#define OWN_PAGES BHI_BITS(3, UNCOUNTED | MAP_TYPE, MAP_PRIVATE)
/* Pages that the kernel may drop (MAP_DROPPABLE, Linux 6.11), with no other flag. They count as
 * private memory. glibc 2.41 keeps the state of getrandom() in such pages, one for several
 * threads. */
#define MAY_BE_DROPPED   BHI_INT(3, MAP_ANONYMOUS | 0x8)
#define READ_AND_WRITE   BHI_INT(2, PROT_READ | PROT_WRITE)
#define PAGES_OF_A_FILE  BHI_BITS(3, UNCOUNTED | MAP_TYPE | MAP_ANONYMOUS, MAP_SHARED)
#define ALLOW_MADVISE(a) BHI_ALLOW1(madvise, BHI_INT(2, a))

/* The flags of glibc's pthread_create, and no others: it makes a thread, never a process or a
 * namespace. */
#define PTHREAD_FLAGS                                                                              \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |            \
     CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

const struct bhi_seccomp_rule bhi_rules_both[] = {
    /* Waiting: locks, condition variables, the lane's doorbell. */
    ALLOW_FUTEX(FUTEX_WAIT),
    ALLOW_FUTEX(FUTEX_WAKE),
    ALLOW_FUTEX(FUTEX_REQUEUE),
    ALLOW_FUTEX(FUTEX_CMP_REQUEUE),
    ALLOW_FUTEX(FUTEX_WAKE_OP),
    ALLOW_FUTEX(FUTEX_WAIT_BITSET),
    ALLOW_FUTEX(FUTEX_WAKE_BITSET),
    BHI_ALLOW(poll),
    BHI_ALLOW(ppoll),
    BHI_ALLOW(sched_yield),
    BHI_ALLOW(clock_gettime), /* if the vDSO cannot answer */
    BHI_ALLOW(clock_getres),
    BHI_ALLOW(gettimeofday),
    BHI_ALLOW(clock_nanosleep),
    BHI_ALLOW(nanosleep),
    BHI_ALLOW(restart_syscall),
    /* ZeroMQ's I/O thread, on its one connection. Its mailboxes call getpid() to notice a fork. A
     * send may name no address. */
    BHI_ALLOW(epoll_wait),
    BHI_ALLOW(epoll_ctl),
    BHI_ALLOW(recvfrom),
    BHI_ALLOW1(sendto, BHI_BITS(4, UINT64_MAX, 0)),
    BHI_ALLOW(getpid),
    BHI_ALLOW(gettid),
    BHI_ALLOW(close),
    /* Each thread of ZeroMQ first sets the policy that it has already, and aborts if that fails. It
     * may do so only after the filter is on. */
    BHI_ALLOW(sched_getscheduler),
    BHI_ALLOW(sched_getparam),
    BHI_ALLOW1(sched_setscheduler, BHI_BITS(1, UINT64_MAX, SCHED_OTHER)),
    /* The descriptor socket, and the checks of what comes through it. */
    BHI_ALLOW1(recvmsg, BHI_INT(0, BHI_FDPASS_DESCRIPTOR)),
    BHI_ALLOW1(fcntl, BHI_INT(1, F_GET_SEALS)),
    BHI_ALLOW1(fcntl, BHI_INT(1, F_GETFL)),
    BHI_ALLOW1(fcntl, BHI_INT(1, F_GETFD)),
    BHI_ALLOW(fstat),
    BHI_ALLOW1(newfstatat, BHI_INT(3, AT_EMPTY_PATH)), /* glibc's fstat() */
    /* Memory is never writable and executable at once by one call. LLVM maps code read-write, then
     * protects it read-execute. MADV_REMOVE is missing: it would zero shared memory that the host
     * reads. */
    BHI_ALLOW2(mmap, NO_EXEC, OWN_PAGES),
    BHI_ALLOW2(mmap, NO_EXEC, PAGES_OF_A_FILE),
    BHI_ALLOW2(mmap, READ_AND_WRITE, MAY_BE_DROPPED),
    BHI_ALLOW1(mprotect, NO_EXEC),
    BHI_ALLOW(munmap),
    BHI_ALLOW(mremap),
    BHI_ALLOW(brk),
    ALLOW_MADVISE(MADV_DONTNEED),
    ALLOW_MADVISE(MADV_FREE),
    ALLOW_MADVISE(MADV_HUGEPAGE),
    ALLOW_MADVISE(MADV_NOHUGEPAGE),
#if BHI_SANITIZED
    ALLOW_MADVISE(MADV_DONTDUMP), /* its shadow memory */
#endif
    /* Threads: calls that a new thread makes under the filter, its name, and its end. */
    BHI_ALLOW(rseq),
    BHI_ALLOW(set_robust_list),
    BHI_ALLOW(rt_sigprocmask),
    BHI_ALLOW(rt_sigreturn),
    BHI_ALLOW(sigaltstack),
    BHI_ALLOW1(prctl, BHI_INT(0, PR_SET_NAME)),
    BHI_ALLOW(sched_getaffinity),
    BHI_ALLOW(getcpu),
    BHI_ALLOW(exit),
    BHI_ALLOW(exit_group),
    /* Harmless facts about the machine and the process. */
    BHI_ALLOW(getuid),
    BHI_ALLOW(geteuid),
    BHI_ALLOW(getgid),
    BHI_ALLOW(getegid),
    BHI_ALLOW(getrandom),
    BHI_ALLOW(sysinfo),
    BHI_ALLOW(uname),
    BHI_ALLOW(getrusage),
    BHI_ALLOW1(prlimit64, BHI_BITS(2, UINT64_MAX, 0)), /* reading a limit, not setting one */
    /* Refused with an error, without killing the process. */
    BHI_ANSWER(sched_setaffinity, EPERM),
    BHI_ANSWER1(sched_setscheduler, EPERM, BHI_NOT(1, SCHED_OTHER)),
    BHI_ANSWER(sched_setparam, EPERM),
    BHI_ANSWER(setpriority, EPERM),
    BHI_ANSWER(clone3, ENOSYS), /* glibc then uses clone, whose flags the filter can check */
    BHI_END_OF_RULES,
};

const struct bhi_seccomp_rule bhi_rules_compile[] = {
    BHI_ALLOW1(mprotect, BHI_INT(2, PROT_READ | PROT_EXEC)),
    BHI_END_OF_RULES,
};

const struct bhi_seccomp_rule bhi_rules_start[] = {
    BHI_ALLOW(read),
    BHI_ALLOW(write),
    BHI_ALLOW1(writev, BHI_INT(0, 2)), /* glibc's message before it aborts */
    BHI_ALLOW1(clone, BHI_BITS(0, UINT64_MAX, PTHREAD_FLAGS)),
    ALLOW_MADVISE(102), /* MADV_GUARD_INSTALL: how glibc 2.42 guards a thread's stack */
    BHI_ALLOW(rt_sigaction),
    /* A worker sends the memory of its abort words through the descriptor socket. */
    BHI_ALLOW1(sendmsg, BHI_INT(0, BHI_FDPASS_DESCRIPTOR)),
    /* Installing filter B. */
    BHI_ALLOW(seccomp),
    BHI_ALLOW1(prctl, BHI_INT(0, PR_SET_NO_NEW_PRIVS)),
    BHI_ALLOW1(prctl, BHI_INT(0, PR_GET_NO_NEW_PRIVS)),
    BHI_END_OF_RULES,
};

const struct bhi_seccomp_rule bhi_rules_steady[] = {
    BHI_ALLOW1(writev, BHI_INT(0, 2)),
    BHI_END_OF_RULES,
};
