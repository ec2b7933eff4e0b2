/* The filters, call by call: what works without a filter is tried again behind A and behind B.
 * Pointers are bad on purpose: EFAULT means that the call was let through. */
#include "base/fd.h"
#include "harness.h"
#include "known_drivers.h"
#include "worker/sandbox/driver.h"
#include "worker/sandbox/judge.h"
#include "worker/sandbox/sandbox.h"
#include "worker/sandbox/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BAD  (-1L) /* as a pointer; as a descriptor it is none */
#define SELF (-2L) /* the process's number */
#define SAME 0     /* the same result and errno as without a filter */
#define DIES (-1)  /* SIGSYS */

struct call {
    const char *name;
    long number;
    long args[6];
    int start;  /* behind A: SAME, DIES, or the errno that the filter answers with */
    int steady; /* behind B */
};

#define SEALABLE (MFD_CLOEXEC | MFD_ALLOW_SEALING)
#define MMAP(name, access, flags, start, steady)                                                   \
    {name, SYS_mmap, {0, 4096, access, flags, BAD, 0}, start, steady}

#define X32 0x40000000L

static const struct call calls[] = {
    /* What a worker lives on. */
    {"futex wait", SYS_futex, {BAD, FUTEX_WAIT, 0}, SAME, SAME},
    {"futex wake", SYS_futex, {BAD, FUTEX_WAKE, 0}, SAME, SAME},
    {"futex private wait", SYS_futex, {BAD, FUTEX_WAIT_BITSET_PRIVATE, 0, 0, 0, 1}, SAME, SAME},
    {"poll", SYS_poll, {BAD, 1, 0}, SAME, SAME},
    {"read", SYS_read, {0, BAD, 0}, SAME, SAME},
    {"read a new one", SYS_read, {99, BAD, 1}, SAME, DIES},
    {"write", SYS_write, {1, BAD, 0}, SAME, SAME},
    {"write a new one", SYS_write, {99, BAD, 1}, SAME, DIES},
    {"writev of a last message", SYS_writev, {2, BAD, 1}, SAME, SAME},
    {"writev to another", SYS_writev, {1, BAD, 1}, DIES, DIES},
    {"close", SYS_close, {BAD}, SAME, SAME},
    {"epoll_wait", SYS_epoll_wait, {BAD, BAD, 1, 0}, SAME, SAME},
    {"epoll_ctl", SYS_epoll_ctl, {BAD, BAD, BAD, BAD}, SAME, SAME},
    {"recvfrom", SYS_recvfrom, {BAD, BAD, 1, 0, 0, 0}, SAME, SAME},
    {"sendto", SYS_sendto, {BAD, BAD, 1, 0, 0, 0}, SAME, SAME},
    {"sendto an address", SYS_sendto, {BAD, BAD, 1, 0, BAD, 16}, DIES, DIES},
    {"recvmsg of the side channel", SYS_recvmsg, {BHI_FDPASS_DESCRIPTOR, BAD, 0}, SAME, SAME},
    {"sendmsg to the side channel", SYS_sendmsg, {BHI_FDPASS_DESCRIPTOR, BAD, 0}, SAME, DIES},
    {"recvmsg of another", SYS_recvmsg, {4, BAD, 0}, DIES, DIES},
    MMAP("mmap", PROT_READ | PROT_WRITE, MAP_SHARED, SAME, SAME),
    MMAP("mmap as glibc 2.41's getrandom() does it", PROT_READ | PROT_WRITE, MAP_ANONYMOUS | 0x8,
         SAME, SAME),
    MMAP("mmap of what may be dropped, to read", PROT_READ, MAP_ANONYMOUS | 0x8, DIES, DIES),
    MMAP("mmap executable", PROT_READ | PROT_EXEC, MAP_PRIVATE, DIES, DIES),
    MMAP("mmap private", PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, SAME, SAME),
    MMAP("mmap shared without a file", PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, DIES,
         DIES),
    MMAP("mmap shared, checked", PROT_READ, MAP_SHARED_VALIDATE, DIES, DIES),
    MMAP("mmap growing down", PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN,
         DIES, DIES),
    MMAP("mmap of huge pages", PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
         DIES, DIES),
    {"mprotect to code", SYS_mprotect, {1, 4096, PROT_READ | PROT_EXEC}, SAME, SAME},
    {"mprotect to W and X", SYS_mprotect, {1, 4096, PROT_WRITE | PROT_EXEC}, DIES, DIES},
    {"munmap", SYS_munmap, {1, 4096}, SAME, SAME},
    {"madvise dontneed", SYS_madvise, {1, 4096, MADV_DONTNEED}, SAME, SAME},
    {"madvise remove", SYS_madvise, {1, 4096, MADV_REMOVE}, DIES, DIES},
    {"getpid", SYS_getpid, {0}, SAME, SAME},
    {"getrandom", SYS_getrandom, {BAD, 1, 0}, SAME, SAME},
    {"fcntl get seals", SYS_fcntl, {BAD, F_GET_SEALS}, SAME, SAME},
    {"fcntl add seals", SYS_fcntl, {BAD, F_ADD_SEALS, F_SEAL_WRITE}, DIES, DIES},
    {"fcntl add some seals", SYS_fcntl, {BAD, F_ADD_SEALS, F_SEAL_SHRINK}, DIES, DIES},
    {"fcntl dup", SYS_fcntl, {BAD, F_DUPFD, 0}, DIES, DIES},
    {"fstat", SYS_fstat, {BAD, BAD}, SAME, SAME},
    {"fstat as glibc does it", SYS_newfstatat, {BAD, BAD, BAD, AT_EMPTY_PATH}, SAME, SAME},
    {"name a thread", SYS_prctl, {PR_SET_NAME, BAD}, SAME, SAME},
    {"reading a limit", SYS_prlimit64, {0, BAD, 0, BAD}, SAME, SAME},

    /* Refused without a death. */
    {"openat", SYS_openat, {AT_FDCWD, BAD, O_RDONLY}, ENOENT, ENOENT},
    {"newfstatat", SYS_newfstatat, {AT_FDCWD, BAD, BAD, 0}, ENOENT, ENOENT},
    {"readlink", SYS_readlink, {BAD, BAD, 1}, ENOENT, ENOENT},
    {"access", SYS_access, {BAD, 0}, ENOENT, ENOENT},
    {"lseek", SYS_lseek, {BAD, 0, 0}, ESPIPE, ESPIPE},
    {"clone3", SYS_clone3, {BAD, 1}, ENOSYS, ENOSYS},
    {"sched_setscheduler", SYS_sched_setscheduler, {0, SCHED_FIFO, BAD}, EPERM, EPERM},
    {"the policy it has", SYS_sched_setscheduler, {0, SCHED_OTHER, BAD}, SAME, SAME},
    {"sched_setaffinity", SYS_sched_setaffinity, {0, 1, BAD}, EPERM, EPERM},

    /* Only while it starts. */
    {"rt_sigaction", SYS_rt_sigaction, {BAD, BAD, BAD, 8}, SAME, DIES},
    {"seccomp", SYS_seccomp, {BAD, BAD, BAD}, SAME, DIES},
    {"madvise guard install", SYS_madvise, {1, 4096, 102}, SAME, DIES},
    /* A driver's memory file: made with these flags, given its length, sealed
       (worker/vulkan/reserve.h). */
    {"memfd_create", SYS_memfd_create, {BAD, SEALABLE}, SAME, DIES},
    {"ftruncate", SYS_ftruncate, {BAD, BHI_DRIVER_FILE_MOST}, SAME, DIES},
    {"fcntl seal a length", SYS_fcntl, {BAD, F_ADD_SEALS, BHI_DRIVER_FILE_SEALS}, SAME, DIES},

    /* Never: the network, other processes, new processes. */
    {"socket", SYS_socket, {BAD, BAD, BAD}, DIES, DIES},
    {"socketpair", SYS_socketpair, {BAD, BAD, BAD, BAD}, DIES, DIES},
    {"connect", SYS_connect, {BAD, BAD, 16}, DIES, DIES},
    {"bind", SYS_bind, {BAD, BAD, 16}, DIES, DIES},
    {"sendmsg", SYS_sendmsg, {BAD, BAD, 0}, DIES, DIES},
    {"execve", SYS_execve, {BAD, BAD, BAD}, DIES, DIES},
    {"execveat", SYS_execveat, {BAD, BAD, BAD, BAD, BAD}, DIES, DIES},
    {"clone of a thread in a namespace", SYS_clone, {0x3d0f00 | CLONE_NEWUSER}, DIES, DIES},
    {"clone of a process", SYS_clone, {CLONE_NEWUSER | CLONE_FS, 0, 0, 0, 0}, DIES, DIES},
    {"kill", SYS_kill, {BAD, BAD}, DIES, DIES},
    {"tgkill of another", SYS_tgkill, {1, 1, 0}, DIES, DIES},
    {"a signal to itself that ends nobody", SYS_tgkill, {SELF, SELF, SIGURG}, DIES, DIES},
    {"ptrace", SYS_ptrace, {BAD, 0, 0, 0}, DIES, DIES},
    {"process_vm_readv", SYS_process_vm_readv, {BAD, BAD, 1, BAD, 1, 0}, DIES, DIES},
    {"pidfd_open", SYS_pidfd_open, {BAD, BAD}, DIES, DIES},
    {"pidfd_getfd", SYS_pidfd_getfd, {BAD, BAD, BAD}, DIES, DIES},
    {"wait4", SYS_wait4, {BAD, BAD, BAD, BAD}, DIES, DIES},
    {"setpgid", SYS_setpgid, {BAD, BAD}, DIES, DIES},
    {"raising a limit", SYS_prlimit64, {0, RLIMIT_NOFILE, BAD, BAD}, DIES, DIES},

    /* Never: files, mounts, namespaces, identities. */
    {"open", SYS_open, {BAD, O_RDONLY}, DIES, DIES},
    {"openat2", SYS_openat2, {BAD, BAD, BAD, 24}, DIES, DIES},
    {"unlink", SYS_unlink, {BAD}, DIES, DIES},
    {"mkdir", SYS_mkdir, {BAD, 0}, DIES, DIES},
    {"ftruncate to more", SYS_ftruncate, {BAD, BHI_DRIVER_FILE_MOST + 1}, DIES, DIES},
    {"truncate", SYS_truncate, {BAD, 0}, DIES, DIES},
    {"fallocate", SYS_fallocate, {BAD, 3, 0, 4096}, DIES, DIES},
    {"memfd_create unsealable", SYS_memfd_create, {BAD, MFD_CLOEXEC}, DIES, DIES},
    {"memfd_create of huge pages", SYS_memfd_create, {BAD, SEALABLE | MFD_HUGETLB}, DIES, DIES},
    {"memfd_secret", SYS_memfd_secret, {0}, DIES, DIES},
    {"mount", SYS_mount, {BAD, BAD, BAD, 0, 0}, DIES, DIES},
    {"unshare", SYS_unshare, {BAD}, DIES, DIES},
    {"setns", SYS_setns, {BAD, BAD}, DIES, DIES},
    {"chroot", SYS_chroot, {BAD}, DIES, DIES},
    {"setuid", SYS_setuid, {BAD}, DIES, DIES},
    {"capset", SYS_capset, {BAD, BAD}, DIES, DIES},
    {"undumpable again", SYS_prctl, {PR_SET_DUMPABLE, 2}, DIES, DIES},

    /* Never: the kernel's large surfaces. */
    {"ioctl", SYS_ioctl, {BAD, BAD, BAD}, DIES, DIES},
    {"bpf", SYS_bpf, {BAD, BAD, BAD}, DIES, DIES},
    {"io_uring_setup", SYS_io_uring_setup, {BAD, BAD}, DIES, DIES},
    {"userfaultfd", SYS_userfaultfd, {BAD}, DIES, DIES},
    {"perf_event_open", SYS_perf_event_open, {BAD, BAD, BAD, BAD, BAD}, DIES, DIES},
    {"keyctl", SYS_keyctl, {BAD, BAD, BAD, BAD, BAD}, DIES, DIES},
    {"add_key", SYS_add_key, {BAD, BAD, BAD, BAD, BAD}, DIES, DIES},
    {"modify_ldt", SYS_modify_ldt, {BAD, BAD, BAD}, DIES, DIES},
    {"futex lock_pi", SYS_futex, {BAD, FUTEX_LOCK_PI, 0}, DIES, DIES},
    {"shmget", SYS_shmget, {BAD, BAD, BAD}, DIES, DIES},
    {"init_module", SYS_init_module, {BAD, 1, BAD}, DIES, DIES},
    {"a number that is none", 5000, {0}, DIES, DIES},
};

/* -- one attempt in a process of its own ---------------------------------------------------- */

enum place { OUTSIDE, BEHIND_START, BEHIND_STEADY };

struct result {
    int signal; /* it died of; 0: it came back */
    long value;
    int error;
};

static long argument_of(const struct call *call, size_t i) {
    return call->args[i] == SELF ? getpid() : call->args[i];
}

static _Noreturn void attempt(const struct bhi_driver *driver, enum place place,
                              const struct call *call, struct result *result) {
    struct bhi_error failure;
    long a[6];
    int kept[] = {0, 1};
    const struct rlimit few = {16, 16};
    /* As a worker has them: five descriptors, no_new_privs. */
    if (bhi_sandbox_descriptors(kept, 2, &failure) != 0 || setrlimit(RLIMIT_NOFILE, &few) != 0 ||
        bhi_sandbox_no_new_privs(&failure) != 0 ||
        (place >= BEHIND_START && bhi_sandbox_seccomp(BHI_FILTER_START, driver, &failure) != 0) ||
        (place >= BEHIND_STEADY && bhi_sandbox_seccomp(BHI_FILTER_STEADY, driver, &failure) != 0)) {
        _exit(1);
    }
    for (size_t i = 0; i < 6; i++) {
        a[i] = argument_of(call, i);
    }
    errno = 0;
    result->value = syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
    result->error = errno;
    syscall(SYS_exit_group, 0);
    for (;;) {
    }
}

static struct result try_call(const struct bhi_driver *driver, enum place place,
                              const struct call *call) {
    struct result *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BHT_TRUE(shared != MAP_FAILED);
    pid_t pid = fork();
    BHT_GE(pid, 0);
    if (pid == 0) {
        attempt(driver, place, call, shared);
    }
    int status;
    BHT_EQ(waitpid(pid, &status, 0), pid);
    struct result result = *shared;
    munmap(shared, sizeof *shared);
    if (WIFSIGNALED(status)) {
        result.signal = WTERMSIG(status);
    } else if (WEXITSTATUS(status) != 0) {
        BHT_FAIL("%s: the filter could not be set", call->name);
    }
    return result;
}

static bool as_expected(const struct result *got, const struct result *outside, int expected) {
    if (expected == DIES) {
        return got->signal == SIGSYS;
    }
    if (expected == SAME) {
        /* Not the same number for getpid(), of course. */
        return got->signal == 0 && got->error == outside->error &&
               (got->value < 0) == (outside->value < 0);
    }
    return got->signal == 0 && got->value == -1 && got->error == expected;
}

static struct bhi_driver lavapipe(void) {
    struct bhi_driver driver = {.info = bhi_driver_info("lavapipe")};
    BHT_TRUE(driver.info);
    return driver;
}

/* What the rule tables say (worker/sandbox/judge.c), which the tracer goes by. */
static bool judged(const struct bhi_driver *driver, enum place place, const struct call *call,
                   int expected) {
    struct bhi_judge judge = {.driver = driver, .pid = (int)getpid(), .open = {0x1f}};
    uint64_t args[6];
    for (size_t i = 0; i < 6; i++) {
        args[i] = (uint64_t)argument_of(call, i);
    }
    const int said =
        bhi_sandbox_judge(&judge, place == BEHIND_START ? BHI_FILTER_START : BHI_FILTER_STEADY,
                          (int)call->number, args);
    return said == (expected == DIES ? BHI_JUDGE_DIES : expected);
}

static void try_table(const struct bhi_driver *driver, const struct call *table, size_t count) {
    unsigned wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const struct call *call = &table[i];
        const int expected[] = {[BEHIND_START] = call->start, [BEHIND_STEADY] = call->steady};
        struct result outside = try_call(driver, OUTSIDE, call);
        if (outside.signal != 0) {
            printf("  %s: killed by %d without a filter\n", call->name, outside.signal);
            wrong++;
        }
        for (enum place place = BEHIND_START; place <= BEHIND_STEADY; place++) {
            struct result got = try_call(driver, place, call);
            if (!judged(driver, place, call, expected[place])) {
                printf("  %s behind %s: the table is judged otherwise\n", call->name,
                       place == BEHIND_START ? "A" : "B");
                wrong++;
            }
            if (!as_expected(&got, &outside, expected[place])) {
                printf("  %s behind %s: signal %d, %ld, errno %d; without: %ld, errno %d\n",
                       call->name, place == BEHIND_START ? "A" : "B", got.signal, got.value,
                       got.error, outside.value, outside.error);
                wrong++;
            }
        }
    }
    BHT_EQ(wrong, 0);
}

TEST(each_call) {
    const struct bhi_driver driver = lavapipe();
    try_table(&driver, calls, BHT_COUNT(calls));
}

#define NVIDIA(number) ((long)_IOC(_IOC_READ | _IOC_WRITE, 'F', number, 32))

/* The filters of a driver that need not be here: they know nothing but numbers. */
static const struct call of_nvidia[] = {
    {"control", SYS_ioctl, {BAD, NVIDIA(0x2a), BAD}, SAME, SAME},
    {"allocating", SYS_ioctl, {BAD, NVIDIA(0x2b), BAD}, SAME, SAME},
    {"another size", SYS_ioctl, {BAD, NVIDIA(0x2a) + (1L << 16), BAD}, SAME, SAME},
    {"giving back", SYS_ioctl, {BAD, NVIDIA(0x29), BAD}, SAME, SAME},
    {"what became of a lost device", SYS_ioctl, {BAD, NVIDIA(0x52), BAD}, SAME, SAME},
    {"mapping", SYS_ioctl, {BAD, NVIDIA(0x4e), BAD}, SAME, SAME},
    {"looking for cards", SYS_ioctl, {BAD, NVIDIA(0xc8), BAD}, SAME, DIES},
    {"asking its version", SYS_ioctl, {BAD, NVIDIA(0xd2), BAD}, SAME, DIES},
    {"another request of its type", SYS_ioctl, {BAD, NVIDIA(0x51), BAD}, DIES, DIES},
    {"that only writes", SYS_ioctl, {BAD, 0x4020462a, BAD}, DIES, DIES},
    {"FIONBIO", SYS_ioctl, {3, 0x5421, BAD}, DIES, DIES},
    {"FIONBIO of the doorbell", SYS_ioctl, {4, 0x5421, BAD}, DIES, DIES},
    {"FIONREAD", SYS_ioctl, {3, 0x541b, BAD}, DIES, DIES},
    {"FIOASYNC", SYS_ioctl, {3, 0x5452, BAD}, DIES, DIES},
    {"FIOCLEX", SYS_ioctl, {3, 0x5451, BAD}, DIES, DIES},
    {"SIOCGIFNAME", SYS_ioctl, {3, 0x8910, BAD}, DIES, DIES},
    {"SIOCGIFCONF", SYS_ioctl, {3, 0x8912, BAD}, DIES, DIES},
    {"SIOCETHTOOL", SYS_ioctl, {3, 0x8946, BAD}, DIES, DIES},
    {"TIOCSTI", SYS_ioctl, {0, 0x5412, BAD}, DIES, DIES},
    {"TCGETS", SYS_ioctl, {0, 0x5401, BAD}, DIES, DIES},
    {"of the frame buffer, type F", SYS_ioctl, {0, 0x4600, BAD}, DIES, DIES},
    {"of nvidia-uvm", SYS_ioctl, {BAD, 0x30000001, BAD}, DIES, DIES},
    {"of nvidia-modeset", SYS_ioctl, {BAD, (long)0xc0106d00, BAD}, DIES, DIES},
    {"of drm", SYS_ioctl, {BAD, (long)0xc0406400, BAD}, DIES, DIES},

    {"opening a library", SYS_openat, {AT_FDCWD, BAD, O_RDONLY | O_CLOEXEC}, SAME, ENOENT},
    {"opening a device", SYS_openat, {AT_FDCWD, BAD, O_RDWR | O_CLOEXEC}, SAME, SAME},
    {"making a file", SYS_openat, {AT_FDCWD, BAD, O_RDWR | O_CREAT, 0600}, EROFS, DIES},
    {"opening to write", SYS_openat, {AT_FDCWD, BAD, O_WRONLY}, DIES, DIES},
    MMAP("mapping a library", PROT_READ | PROT_EXEC, MAP_PRIVATE, SAME, DIES),
    MMAP("mapping W and X", PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, DIES, DIES),
    {"mprotect to W and X", SYS_mprotect, {1, 4096, PROT_WRITE | PROT_EXEC}, DIES, DIES},
    {"memfd_create", SYS_memfd_create, {BAD, SEALABLE}, SAME, DIES},
    {"memfd_create of huge pages", SYS_memfd_create, {BAD, MFD_HUGETLB}, DIES, DIES},
    {"fallocate", SYS_fallocate, {BAD, 0, 0, 4096}, SAME, DIES},
    {"fallocate to punch", SYS_fallocate, {BAD, 3, 0, 4096}, DIES, DIES},
    {"madvise dontfork", SYS_madvise, {1, 4096, MADV_DONTFORK}, SAME, SAME},
    {"madvise remove", SYS_madvise, {1, 4096, MADV_REMOVE}, DIES, DIES},
    {"fcntl set flags", SYS_fcntl, {3, F_SETFL, 0}, DIES, DIES},
    {"socket", SYS_socket, {BAD, BAD, BAD}, DIES, DIES},
    {"socketpair", SYS_socketpair, {BAD, BAD, BAD, BAD}, DIES, DIES},
    {"execve", SYS_execve, {BAD, BAD, BAD}, DIES, DIES},
};

TEST(each_call_of_nvidia) {
    const struct bhi_driver driver = {.info = bhi_driver_info("nvidia")};
    BHT_TRUE(driver.info);
    try_table(&driver, of_nvidia, BHT_COUNT(of_nvidia));
}

#define UVM(number) {BAD, number, BAD}
static const struct call of_cuda[] = {
    {"allocating", SYS_ioctl, {BAD, NVIDIA(0x2b), BAD}, SAME, SAME},
    {"a request of graphics alone", SYS_ioctl, {BAD, NVIDIA(0x51), BAD}, DIES, DIES},
    {"mapping memory into the GPU", SYS_ioctl, UVM(33), SAME, SAME},
    {"opening nvidia-uvm", SYS_ioctl, UVM(0x30000001), SAME, DIES},
    {"a GPU more", SYS_ioctl, UVM(37), SAME, DIES},
    {"no waiting at its pipe", SYS_fcntl, {99, F_SETFL, O_NONBLOCK}, SAME, DIES},
    {"waiting at one again", SYS_fcntl, {99, F_SETFL, 0}, DIES, DIES},
    {"its own socket", SYS_socket, {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 99}, SAME, DIES},
    {"another one", SYS_socket, {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0}, DIES, DIES},
    {"to MPS", SYS_connect, {BAD, BAD, 110}, ECONNREFUSED, DIES},
    {"bind", SYS_bind, {BAD, BAD, 16}, SAME, DIES},
    {"listen", SYS_listen, {BAD, 1}, SAME, DIES},
    {"accept", SYS_accept4, {BAD, BAD, BAD, 0}, DIES, DIES},
    {"a second descriptor", SYS_dup, {BAD}, SAME, DIES},
    {"shared pages",
     SYS_mmap,
     {0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, BAD, 1},
     SAME,
     SAME},
    {"more than a kernel's printf() needs",
     SYS_mmap,
     {0, (64 << 20) + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, BAD, 1},
     DIES,
     DIES},
    {"a tool of nvidia-uvm", SYS_ioctl, UVM(62), DIES, DIES},
    {"FIBMAP", SYS_ioctl, {0, 1, BAD}, DIES, DIES},
    {"FIGETBSZ", SYS_ioctl, {0, 2, BAD}, DIES, DIES},
    {"FIONBIO", SYS_ioctl, {3, 0x5421, BAD}, DIES, DIES},
    {"TIOCSTI", SYS_ioctl, {0, 0x5412, BAD}, DIES, DIES},
    {"SIOCGIFNAME", SYS_ioctl, {3, 0x8910, BAD}, DIES, DIES},
    {"opening a library", SYS_openat, {AT_FDCWD, BAD, O_RDONLY | O_CLOEXEC}, SAME, ENOENT},
    {"opening a device", SYS_openat, {AT_FDCWD, BAD, O_RDWR | O_CLOEXEC}, SAME, SAME},
    {"making a file", SYS_openat, {AT_FDCWD, BAD, O_RDWR | O_CREAT, 0600}, EROFS, DIES},
    {"opening to write", SYS_openat, {AT_FDCWD, BAD, O_WRONLY}, DIES, DIES},
    MMAP("mapping a library", PROT_READ | PROT_EXEC, MAP_PRIVATE, SAME, DIES),
    MMAP("mapping W and X", PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, DIES, DIES),
    {"memfd_create", SYS_memfd_create, {BAD, SEALABLE}, SAME, DIES},
    {"madvise remove", SYS_madvise, {1, 4096, MADV_REMOVE}, DIES, DIES},
    {"to the device holder", SYS_sendmsg, {BHI_DEVICE_HOLDER_DESCRIPTOR, BAD, 0}, SAME, DIES},
    {"exported memory", SYS_sendmsg, {BHI_FDPASS_DESCRIPTOR, BAD, 0}, SAME, SAME},
    {"socket", SYS_socket, {BAD, BAD, BAD}, DIES, DIES},
    {"execve", SYS_execve, {BAD, BAD, BAD}, DIES, DIES},
};

TEST(each_call_of_cuda) {
    const struct bhi_driver driver = {.info = bhi_driver_info("cuda")};
    BHT_TRUE(driver.info);
    try_table(&driver, of_cuda, BHT_COUNT(of_cuda));
}

#define DRM(number) ((long)_IOC(_IOC_READ | _IOC_WRITE, 'd', number, 32))
static const struct call of_radv[] = {
    {"a request of amdgpu", SYS_ioctl, {BAD, DRM(0x44), BAD}, SAME, SAME},
    {"closing a handle", SYS_ioctl, {BAD, DRM(0x09), BAD}, SAME, SAME},
    {"a sync object", SYS_ioctl, {BAD, DRM(0xc3), BAD}, SAME, SAME},
    {"becoming the master", SYS_ioctl, {BAD, 0x641e, BAD}, DIES, DIES},
    {"setting a mode", SYS_ioctl, {BAD, DRM(0xa2), BAD}, DIES, DIES},
    {"opening by name", SYS_ioctl, {BAD, DRM(0x0b), BAD}, DIES, DIES},
    {"FIONBIO", SYS_ioctl, {3, 0x5421, BAD}, DIES, DIES},
    {"SIOCGIFNAME", SYS_ioctl, {3, 0x8910, BAD}, DIES, DIES},
    {"opening a node", SYS_openat, {AT_FDCWD, BAD, O_RDWR | O_CLOEXEC}, SAME, ENOENT},
    {"making a file", SYS_openat, {AT_FDCWD, BAD, O_RDWR | O_CREAT, 0600}, EROFS, ENOENT},
    MMAP("mmap executable", PROT_READ | PROT_EXEC, MAP_PRIVATE, DIES, DIES),
};

TEST(each_call_of_radv) {
    const struct bhi_driver driver = {.info = bhi_driver_info("radv")};
    BHT_TRUE(driver.info && !driver.info->tried);
    try_table(&driver, of_radv, BHT_COUNT(of_radv));
}

static const struct call of_swiftshader[] = {
    {"its code's file", SYS_memfd_create, {BAD, 0}, SAME, DIES},
    {"one that can be sealed", SYS_memfd_create, {BAD, MFD_ALLOW_SEALING}, DIES, DIES},
    {"its length", SYS_ftruncate, {BAD, 64 << 20}, SAME, EPERM},
    {"too long", SYS_ftruncate, {BAD, (64 << 20) + 1}, DIES, DIES},
    {"ioctl", SYS_ioctl, {3, 0x5421, BAD}, DIES, DIES},
};

TEST(each_call_of_swiftshader) {
    const struct bhi_driver driver = {.info = bhi_driver_info("swiftshader")};
    BHT_TRUE(driver.info);
    try_table(&driver, of_swiftshader, BHT_COUNT(of_swiftshader));
}

#define PEEK (MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC)
/* Those of no driver: neither has code of its own. */
static const struct call of_both[] = {
    {"mprotect to code", SYS_mprotect, {1, 4096, PROT_READ | PROT_EXEC}, DIES, DIES},
    MMAP("mmap executable", PROT_READ | PROT_EXEC, MAP_PRIVATE, DIES, DIES),
    {"taking a file out of its socket", SYS_recvmsg, {1, BAD, MSG_DONTWAIT}, DIES, DIES},
    {"openat", SYS_openat, {AT_FDCWD, BAD, O_RDONLY}, ENOENT, ENOENT},
    {"memfd_create", SYS_memfd_create, {BAD, SEALABLE}, DIES, DIES},
    {"ftruncate", SYS_ftruncate, {BAD, 0}, DIES, DIES},
    {"fallocate", SYS_fallocate, {BAD, 3, 0, 4096}, DIES, DIES},
    {"sendmsg to the side channel", SYS_sendmsg, {BHI_FDPASS_DESCRIPTOR, BAD, 0}, SAME, DIES},
    {"socket", SYS_socket, {BAD, BAD, BAD}, DIES, DIES},
};

static const struct call of_loader[] = {
    {"looking at a file in its socket", SYS_recvmsg, {1, BAD, PEEK}, SAME, SAME},
    {"pread64", SYS_pread64, {BAD, BAD, 1, 0}, SAME, SAME},
    {"pwrite64", SYS_pwrite64, {BAD, BAD, 1, 0}, SAME, SAME},
    {"ioctl", SYS_ioctl, {0, 0x5401, BAD}, DIES, DIES},
};

static const struct call of_compiler[] = {
    {"looking at a file in a socket", SYS_recvmsg, {1, BAD, PEEK}, DIES, DIES},
    {"pread64", SYS_pread64, {BAD, BAD, 1, 0}, DIES, DIES},
    {"pwrite64", SYS_pwrite64, {BAD, BAD, 1, 0}, DIES, DIES},
    {"ioctl", SYS_ioctl, {0, 0x5401, BAD}, ENOTTY, ENOTTY},
};

/* What NVRTC asks for; it does without all but the folder. */
static const struct call of_nvrtc[] = {
    {"the folder", SYS_getcwd, {BAD, 1}, SAME, SAME},
    {"setting a limit", SYS_prlimit64, {0, RLIMIT_STACK, BAD, 0}, EPERM, EPERM},
    {"ignoring a signal", SYS_rt_sigaction, {SIGINT, BAD, BAD, 8}, SAME, EPERM},
};

TEST(each_call_of_loaders_and_compilers) {
    struct bhi_driver driver = {.info = bhi_driver_info("lavapipe")}, nvrtc;
    struct bhi_error failure;
    BHT_EQ(bhi_driver_pick(&nvrtc, "nvrtc", &failure), 0);
    const struct bhi_driver *loader = bhi_driver_none(BHI_WORKER_LOADER, &driver);
    const struct bhi_driver *compiler = bhi_driver_none(BHI_WORKER_COMPILER, &driver);
    BHT_EQ(bhi_driver_none(BHI_WORKER_LOADER, &nvrtc), loader);
    BHT_EQ(bhi_driver_none(BHI_WORKER_COMPILER, &nvrtc), &nvrtc);
    try_table(&nvrtc, of_both, BHT_COUNT(of_both));
    try_table(&nvrtc, of_compiler, BHT_COUNT(of_compiler));
    try_table(&nvrtc, of_nvrtc, BHT_COUNT(of_nvrtc));
    try_table(loader, of_both, BHT_COUNT(of_both));
    try_table(loader, of_loader, BHT_COUNT(of_loader));
    try_table(compiler, of_both, BHT_COUNT(of_both));
    try_table(compiler, of_compiler, BHT_COUNT(of_compiler));
}

/* Of type 'F' these numbers, to both directions, and of nvidia-uvm, whose numbers are bare, these; of
 * either no other of the 256. docs/decisions/0002 says why each is there. */
TEST(requests_of_nvidia_and_cuda) {
    static const unsigned char steady[] = {0x27, 0x29, 0x2a, 0x2b, 0x34, 0x4a, 0x4e, 0x4f, 0x52,
                                           0x54, 0x57, 0x58, 0x5e, 0xc9, 0xce, 0xcf, 0xd4};
    static const unsigned char start[] = {0xc8, 0xd2, 0xd6, 0xd7};
    static const unsigned char uvm_steady[] = {28, 33, 34, 66, 68, 72, 73};
    static const unsigned char uvm_start[] = {23, 24, 25, 27, 37, 38, 39, 65, 75};
    const struct {
        const char *driver;
        long base;
        const unsigned char *steady, *start;
        size_t steadies, starts;
    } rows[] = {
        {"nvidia", NVIDIA(0), steady, start, sizeof steady, sizeof start},
        {"nvidia", 0, NULL, NULL, 0, 0},
        {"cuda", NVIDIA(0), steady, start, sizeof steady, sizeof start},
        {"cuda", 0, uvm_steady, uvm_start, sizeof uvm_steady, sizeof uvm_start},
    };
    for (size_t row = 0; row < BHT_COUNT(rows); row++) {
        const struct bhi_driver driver = {.info = bhi_driver_info(rows[row].driver)};
        for (int number = 0; number < 256; number++) {
            const bool in_steady =
                rows[row].steadies && memchr(rows[row].steady, number, rows[row].steadies);
            const bool in_start = in_steady || (rows[row].starts &&
                                                memchr(rows[row].start, number, rows[row].starts));
            const struct call call = {
                "a request", SYS_ioctl, {BAD, rows[row].base | number, BAD}, 0, 0};
            if (!judged(&driver, BEHIND_START, &call, in_start ? SAME : DIES) ||
                !judged(&driver, BEHIND_STEADY, &call, in_steady ? SAME : DIES)) {
                BHT_FAIL("request 0x%02x of row %zu", (unsigned)number, row);
            }
        }
    }
}

/* What a worker may open, all of it: a path that is added is added here, with its reason in
 * docs/decisions/0002. */
TEST(paths_of_nvidia_and_cuda) {
    static const struct bhi_driver_path nvidia[] = {
        {"/dev/nvidiactl", BHI_PATH_DEVICE},
        {"/dev/nvidia[0-9]*", BHI_PATH_NODE},
        {"/proc", BHI_PATH_PROC},
        {"/proc/self", BHI_PATH_INSIDE},
        {"/proc/stat", BHI_PATH_INSIDE},
        {"/proc/meminfo", BHI_PATH_INSIDE},
        {"/proc/cpuinfo", BHI_PATH_INSIDE},
        {"/proc/driver/nvidia", BHI_PATH_INSIDE},
        {"/sys/devices/system/cpu", BHI_PATH_READ},
        {"/sys/devices/system/memory", BHI_PATH_READ},
        {"/sys/module/nvidia", BHI_PATH_READ},
        {BHI_PATH_OF_LIBRARY, BHI_PATH_LIBS},
        {"/usr/lib/*-linux-gnu", BHI_PATH_LIBS},
        {"/usr/lib64", BHI_PATH_LIBS},
        {"/lib", BHI_PATH_LIBS},
        {"/lib64", BHI_PATH_LIBS},
        {"/usr/share/glvnd", BHI_PATH_READ},
        {"/usr/share/egl", BHI_PATH_READ},
        {"/usr/share/nvidia", BHI_PATH_READ},
        {"/usr/local/nvidia/share/glvnd", BHI_PATH_READ},
        {"/etc/ld.so.cache", BHI_PATH_READ},
    };
    static const struct bhi_driver_path cuda[] = {
        {"/dev/nvidiactl", BHI_PATH_DEVICE},
        {"/dev/nvidia-uvm", BHI_PATH_DEVICE},
        {"/dev/nvidia[0-9]*", BHI_PATH_NODE},
        {"/proc", BHI_PATH_PROC},
        {"/proc/self", BHI_PATH_INSIDE},
        {"/proc/stat", BHI_PATH_INSIDE},
        {"/proc/meminfo", BHI_PATH_INSIDE},
        {"/proc/cpuinfo", BHI_PATH_INSIDE},
        {"/proc/devices", BHI_PATH_INSIDE},
        {"/proc/modules", BHI_PATH_INSIDE},
        {"/proc/driver/nvidia", BHI_PATH_INSIDE},
        {"/sys/devices/system/cpu", BHI_PATH_READ},
        {"/sys/devices/system/node", BHI_PATH_READ},
        {"/sys/devices/system/memory", BHI_PATH_READ},
        {"/sys/module/nvidia", BHI_PATH_READ},
        {BHI_PATH_OF_LIBRARY, BHI_PATH_LIBS},
        {"/usr/lib/*-linux-gnu", BHI_PATH_LIBS},
        {"/usr/lib64", BHI_PATH_LIBS},
        {"/lib", BHI_PATH_LIBS},
        {"/lib64", BHI_PATH_LIBS},
        {"/etc/ld.so.cache", BHI_PATH_READ},
    };
    const struct {
        const char *driver;
        const struct bhi_driver_path *paths;
        size_t count;
    } rows[] = {{"nvidia", nvidia, BHT_COUNT(nvidia)}, {"cuda", cuda, BHT_COUNT(cuda)}};
    for (size_t row = 0; row < BHT_COUNT(rows); row++) {
        const struct bhi_driver_path *paths = bhi_driver_info(rows[row].driver)->paths;
        size_t count = 0;
        for (; paths[count].pattern; count++) {
            BHT_LT(count, rows[row].count);
            BHT_STR_EQ(paths[count].pattern, rows[row].paths[count].pattern);
            BHT_EQ(paths[count].kind, rows[row].paths[count].kind);
        }
        BHT_EQ(count, rows[row].count);
    }
}

/* Every driver's filters can be built and loaded, also those of a driver that is not here. */
TEST(every_driver) {
    static const struct call harmless = {"getpid", SYS_getpid, {0}, SAME, SAME};
    static const struct call never = {"io_uring_setup", SYS_io_uring_setup, {BAD, BAD}, DIES, DIES};
    const struct bhi_driver_info *known[KNOWN_DRIVERS];
    const size_t count = known_drivers(known);
    for (size_t i = 0; i < count; i++) {
        const struct bhi_driver driver = {.info = known[i]};
        for (enum place place = BEHIND_START; place <= BEHIND_STEADY; place++) {
            BHT_EQ(try_call(&driver, place, &harmless).signal, 0);
            BHT_EQ(try_call(&driver, place, &never).signal, SIGSYS);
        }
    }
}

#ifdef __x86_64__
TEST(other_architectures) {
    const struct bhi_driver driver = lavapipe();
    static const struct call x32 = {"x32", X32 | SYS_getpid, {0}, DIES, DIES};
    BHT_EQ(try_call(&driver, OUTSIDE, &x32).signal, 0);
    BHT_EQ(try_call(&driver, BEHIND_START, &x32).signal, SIGSYS);
    BHT_EQ(try_call(&driver, BEHIND_STEADY, &x32).signal, SIGSYS);
}
#endif

/* Behind B: the buffers of its submissions are mapped, and only that. */
TEST(an_open_memfd_is_neither_read_nor_written) {
    static const long numbers[] = {SYS_read, SYS_write};
    const struct bhi_driver driver = lavapipe();
    for (size_t i = 0; i < BHT_COUNT(numbers); i++) {
        const pid_t pid = fork();
        BHT_GE(pid, 0);
        if (pid == 0) {
            struct bhi_error failure;
            const int fd = memfd_create("buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
            if (fd < 0 || bhi_sandbox_no_new_privs(&failure) != 0 ||
                bhi_sandbox_seccomp(BHI_FILTER_START, &driver, &failure) != 0 ||
                bhi_sandbox_seccomp(BHI_FILTER_STEADY, &driver, &failure) != 0) {
                _exit(1);
            }
            syscall(numbers[i], fd, "", 1);
            _exit(0);
        }
        int status;
        BHT_EQ(waitpid(pid, &status, 0), pid);
        BHT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    }
}

/* abort() behind the filters is a SIGABRT, not a forbidden call. */
TEST(abort_is_abort) {
    const struct bhi_driver driver = lavapipe();
    for (enum bhi_filter last = BHI_FILTER_START; last <= BHI_FILTER_STEADY; last++) {
        pid_t pid = fork();
        BHT_GE(pid, 0);
        if (pid == 0) {
            struct bhi_error failure;
            if (bhi_sandbox_no_new_privs(&failure) != 0 ||
                bhi_sandbox_seccomp(BHI_FILTER_START, &driver, &failure) != 0 ||
                (last == BHI_FILTER_STEADY &&
                 bhi_sandbox_seccomp(BHI_FILTER_STEADY, &driver, &failure) != 0)) {
                _exit(1);
            }
            abort();
        }
        int status;
        BHT_EQ(waitpid(pid, &status, 0), pid);
        BHT_TRUE(WIFSIGNALED(status));
        BHT_EQ(WTERMSIG(status), SIGABRT);
    }
}
