/* Writes arguments of system calls as text: those that a rule can compare, and paths. */
#include "worker/trace/run.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct word {
    uint64_t bits;
    const char *name;
};

/* Writes "a|b|0x40": names of the known bits, and a number for the others. */
static void words(char *out, size_t size, const struct word *list, size_t count, uint64_t value,
                  const char *zero) {
    size_t used = 0;
    out[0] = '\0';
    if (value == 0) {
        snprintf(out, size, "%s", zero);
        return;
    }
    for (size_t i = 0; i < count && used < size; i++) {
        if (list[i].bits != 0 && (value & list[i].bits) == list[i].bits) {
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? "|" : "",
                                     list[i].name);
            value &= ~list[i].bits;
        }
    }
    if (value != 0 && used < size) {
        snprintf(out + used, size - used, "%s0x%" PRIx64, used > 0 ? "|" : "", value);
    }
}

/* Writes the name of |value|, or the number. */
static void one(char *out, size_t size, const struct word *list, size_t count, uint64_t value) {
    for (size_t i = 0; i < count; i++) {
        if (list[i].bits == value) {
            snprintf(out, size, "%s", list[i].name);
            return;
        }
    }
    snprintf(out, size, "%" PRIu64, value);
}

#define WORDS(out, size, list, value, zero)                                                        \
    words(out, size, list, sizeof list / sizeof list[0], value, zero)
#define ONE(out, size, list, value) one(out, size, list, sizeof list / sizeof list[0], value)
#define W(name)                     {name, #name}

static const struct word protections[] = {W(PROT_READ), W(PROT_WRITE), W(PROT_EXEC)};
static const struct word mappings[] = {W(MAP_SHARED_VALIDATE), W(MAP_SHARED),   W(MAP_PRIVATE),
                                       W(MAP_FIXED_NOREPLACE), W(MAP_FIXED),    W(MAP_ANONYMOUS),
                                       W(MAP_NORESERVE),       W(MAP_POPULATE), W(MAP_STACK),
                                       W(MAP_GROWSDOWN),       W(MAP_HUGETLB),  W(MAP_LOCKED),
                                       W(MAP_DENYWRITE)};
static const struct word opening[] = {W(O_RDWR),    W(O_WRONLY),    W(O_CREAT),    W(O_EXCL),
                                      W(O_TRUNC),   W(O_APPEND),    W(O_CLOEXEC),  W(O_NONBLOCK),
                                      W(O_TMPFILE), W(O_DIRECTORY), W(O_NOFOLLOW), W(O_PATH)};
static const struct word memfds[] = {
    W(MFD_CLOEXEC), W(MFD_ALLOW_SEALING), W(MFD_HUGETLB), {8, "MFD_NOEXEC_SEAL"}, {16, "MFD_EXEC"}};
static const struct word clones[] = {W(CLONE_VM),
                                     W(CLONE_FS),
                                     W(CLONE_FILES),
                                     W(CLONE_SIGHAND),
                                     W(CLONE_THREAD),
                                     W(CLONE_SYSVSEM),
                                     W(CLONE_SETTLS),
                                     W(CLONE_PARENT_SETTID),
                                     W(CLONE_CHILD_CLEARTID),
                                     W(CLONE_VFORK),
                                     W(CLONE_NEWUSER),
                                     W(CLONE_NEWNS)};
static const struct word advices[] = {
    W(MADV_NORMAL), W(MADV_DONTNEED), W(MADV_FREE),       W(MADV_REMOVE),   W(MADV_DONTFORK),
    W(MADV_DOFORK), W(MADV_HUGEPAGE), W(MADV_NOHUGEPAGE), W(MADV_DONTDUMP), W(MADV_WILLNEED)};
static const struct word futexes[] = {
    W(FUTEX_WAIT),        W(FUTEX_WAKE),        W(FUTEX_REQUEUE),
    W(FUTEX_CMP_REQUEUE), W(FUTEX_WAKE_OP),     W(FUTEX_LOCK_PI),
    W(FUTEX_WAIT_BITSET), W(FUTEX_WAKE_BITSET), W(FUTEX_WAIT_REQUEUE_PI)};
static const struct word controls[] = {
    W(F_DUPFD),     W(F_GETFD),     W(F_SETFD), W(F_GETFL), W(F_SETFL), W(F_DUPFD_CLOEXEC),
    W(F_ADD_SEALS), W(F_GET_SEALS), W(F_GETLK), W(F_SETLK), W(F_SETLKW)};
static const struct word requests[] = {
    {0x5401, "TCGETS"},  {0x541b, "FIONREAD"},    {0x5421, "FIONBIO"},    {0x5450, "FIONCLEX"},
    {0x5451, "FIOCLEX"}, {0x8910, "SIOCGIFNAME"}, {0x8912, "SIOCGIFCONF"}};

static void text_at(pid_t pid, uint64_t address, char *out, size_t size) {
    char bytes[150];
    memset(bytes, 0, sizeof bytes);
    /* Up to the end of the page: the next page may not be mapped. */
    const size_t room = 4096 - (size_t)(address & 4095);
    const struct iovec here = {bytes, sizeof bytes - 1};
    const struct iovec there[2] = {
        {(void *)(uintptr_t)address, room < sizeof bytes - 1 ? room : sizeof bytes - 1},
        {(void *)(uintptr_t)(address + room),
         room < sizeof bytes - 1 ? sizeof bytes - 1 - room : 0}};
    if (process_vm_readv(pid, &here, 1, there, 2, 0) <= 0) {
        snprintf(out, size, "?");
        return;
    }
    snprintf(out, size, "%s", bytes);
}

/* Writes what a descriptor refers to, such as "/dev/nvidiactl ", or nothing if /proc does not
 * tell. */
static void descriptor(pid_t pid, uint64_t fd, char *out, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, (int)fd);
    ssize_t length = readlink(link, out, size - 2);
    if (length <= 0) {
        out[0] = '\0';
        return;
    }
    out[length] = ' ';
    out[length + 1] = '\0';
}

static void file(pid_t pid, uint64_t folder, uint64_t path, char *out, size_t size) {
    char name[160];
    text_at(pid, path, name, sizeof name);
    struct stat st;
    /* The tracer has the same root as the tracee, with other rights. */
    const bool there = name[0] == '/' && lstat(name, &st) == 0;
    snprintf(out, size, "%s%s%s", name[0] != '\0' ? name : "(its descriptor)",
             name[0] == '/' || name[0] == '\0' || (int)folder == AT_FDCWD ? "" : " (in a folder)",
             name[0] != '/' || there ? "" : " (not there)");
}

static void open_file(pid_t pid, uint64_t folder, uint64_t path, uint64_t flags, char *out,
                      size_t size) {
    char name[220], how[100];
    file(pid, folder, path, name, sizeof name);
    WORDS(how, sizeof how, opening, flags & ~(uint64_t)0100000 /* O_LARGEFILE */, "O_RDONLY");
    snprintf(out, size, "%s %s", name, how);
}

static void device_request(pid_t pid, const uint64_t args[6], char *out, size_t size) {
    char where[100];
    const uint32_t request = (uint32_t)args[1];
    descriptor(pid, args[0], where, sizeof where);
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        if (requests[i].bits == request) {
            snprintf(out, size, "%s%s (0x%x)", where, requests[i].name, request);
            return;
        }
    }
    const unsigned type = _IOC_TYPE(request);
    snprintf(out, size, "%s0x%x (type %c 0x%02x, number 0x%02x, %s, %u bytes)", where, request,
             type > 32 && type < 127 ? (int)type : '?', type, _IOC_NR(request),
             _IOC_DIR(request) == (_IOC_READ | _IOC_WRITE) ? "read and write"
             : _IOC_DIR(request) == _IOC_READ              ? "read"
             : _IOC_DIR(request) == _IOC_WRITE             ? "write"
                                                           : "no data",
             _IOC_SIZE(request));
}

void bhi_trace_text(pid_t pid, int number, const uint64_t a[6], char *out, size_t size) {
    char x[200], y[120];
    out[0] = '\0';
    switch (number) {
    case SYS_ioctl:
        device_request(pid, a, out, size);
        return;
    case SYS_openat:
        open_file(pid, a[0], a[1], a[2], out, size);
        return;
    case SYS_newfstatat:
    case SYS_faccessat:
    case SYS_faccessat2:
    case SYS_readlinkat:
    case SYS_statx:
    case SYS_mkdirat:
    case SYS_unlinkat:
    case SYS_mknodat:
        file(pid, a[0], a[1], out, size);
        return;
#ifdef SYS_open
    case SYS_open:
        open_file(pid, (uint64_t)AT_FDCWD, a[0], a[1], out, size);
        return;
    case SYS_stat:
    case SYS_lstat:
    case SYS_access:
    case SYS_readlink:
    case SYS_mkdir:
    case SYS_unlink:
    case SYS_mknod:
    case SYS_chmod:
#endif
    case SYS_statfs:
        file(pid, (uint64_t)AT_FDCWD, a[0], out, size);
        return;
    case SYS_mmap:
        WORDS(x, sizeof x, protections, a[2], "PROT_NONE");
        WORDS(y, sizeof y, mappings, a[3], "0");
        snprintf(out, size, "%s %s", x, y);
        return;
    case SYS_mprotect:
        WORDS(out, size, protections, a[2], "PROT_NONE");
        return;
    case SYS_madvise:
        ONE(out, size, advices, a[2]);
        return;
    case SYS_memfd_create:
        text_at(pid, a[0], x, sizeof x);
        WORDS(y, sizeof y, memfds, a[1], "0");
        snprintf(out, size, "\"%s\" %s", x, y);
        return;
    case SYS_clone:
        WORDS(out, size, clones, a[0], "0");
        return;
    case SYS_futex:
        ONE(out, size, futexes, a[1] & ~(uint64_t)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME));
        return;
    case SYS_fcntl:
        ONE(x, sizeof x, controls, (uint32_t)a[1]);
        snprintf(out, size, "%s %d", x, (uint32_t)a[1] == F_GETFL ? 0 : (int)a[2]);
        return;
    case SYS_prctl:
    case SYS_socket:
        snprintf(out, size, "%" PRIu64 " %" PRIu64, a[0],
                 number == SYS_socket ? a[1] : UINT64_C(0));
        return;
    case SYS_prlimit64:
        snprintf(out, size, "%s %" PRIu64, a[2] != 0 ? "sets" : "reads", a[1]);
        return;
    case SYS_sched_setscheduler:
        snprintf(out, size, "policy %d", (int)a[1]);
        return;
    case SYS_fallocate:
        snprintf(out, size, "mode %" PRIu64, a[1]);
        return;
    case SYS_rt_sigaction:
        snprintf(out, size, "signal %d", (int)a[0]);
        return;
    case SYS_read:
    case SYS_write:
    case SYS_pread64:
    case SYS_readv:
    case SYS_writev:
        descriptor(pid, a[0], out, size);
        return;
    default:
        return;
    }
}
