/* The walls one by one, as the sandbox's own functions put them up: in a process that has nothing else.
 * What a wall's victim sees is in worker/probe; here is what no attempt shows. */
#include "harness.h"
#include "worker/host.h"
#include "worker/probe/victim.h"
#include "worker/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct bhi_error failure;
static struct bhi_driver driver; /* lavapipe */

static void begin(void) {
    driver.info = bhi_driver_info("lavapipe");
    BHT_TRUE(driver.info);
}

BHT_AT_START(bht_around(begin, NULL))

/* Runs |act| in a fork. Returns how that has ended. */
static int status_of(void (*act)(void)) {
    int status;
    const pid_t pid = fork();
    BHT_GE(pid, 0);
    if (pid == 0) {
        act();
        _exit(0);
    }
    BHT_EQ(waitpid(pid, &status, 0), pid);
    return status;
}

/* -- limits ------------------------------------------------------------------------------------ */

/* The process's, in place of its own: what a test may set is another thing on each machine. */
static struct {
    bool pretended, refuses; /* none can be set */
    struct rlimit of[RLIM_NLIMITS];
} pretend;

BHT_WRAP(int, getrlimit, __rlimit_resource_t resource, struct rlimit *out) {
    if (!pretend.pretended) {
        return __real_getrlimit(resource, out);
    }
    *out = pretend.of[resource];
    return 0;
}

BHT_WRAP(int, setrlimit, __rlimit_resource_t resource, const struct rlimit *limit) {
    if (!pretend.pretended) {
        return __real_setrlimit(resource, limit);
    }
    if (pretend.refuses) {
        errno = EPERM;
        return -1;
    }
    pretend.of[resource] = *limit;
    return 0;
}

TEST(each_limit_is_set) {
    static const struct {
        int resource;
        rlim_t value;
    } limits[] = {{RLIMIT_CORE, 0},      {RLIMIT_NOFILE, 256}, {RLIMIT_FSIZE, BHI_DRIVER_FILE_MOST},
                  {RLIMIT_NPROC, 4096},  {RLIMIT_MSGQUEUE, 0}, {RLIMIT_SIGPENDING, 64},
                  {RLIMIT_RTPRIO, 0},    {RLIMIT_NICE, 0},     {RLIMIT_MEMLOCK, 65536},
                  {RLIMIT_DATA, 1 << 30}};
    static const rlim_t before[] = {RLIM_INFINITY, 1 << 20, 8};
    for (size_t k = 0; k < BHT_COUNT(before); k++) {
        const rlim_t hosts = before[k];
        bool memory = false;
        for (int i = 0; i < RLIM_NLIMITS; i++) {
            pretend.of[i] = (struct rlimit){hosts / 2, hosts};
        }
        pretend.pretended = true;
        BHT_EQ(bhi_sandbox_rlimits(&driver, 1 << 30, &memory, &failure), 0);
        pretend.pretended = false;
        for (size_t i = 0; i < BHT_COUNT(limits) - !memory; i++) { /* not beside a sanitizer */
            const struct rlimit limit = pretend.of[limits[i].resource];
            /* What the host has less of stays. */
            const rlim_t value = limits[i].value < hosts ? limits[i].value : hosts;
            if (limit.rlim_max != value || limit.rlim_cur != value) {
                BHT_FAIL("limit %d is %llu, and not %llu", limits[i].resource,
                         (unsigned long long)limit.rlim_max, (unsigned long long)value);
            }
        }
    }
}

/* Of the limits of a victim, the one of this number is not there. */
static int lacking;

static void try_limits(void) {
    const struct bhi_probe_context context = {.driver = &driver};
    struct bhi_victim_page page = {.done = 0};
    struct bhi_victim victim = {.context = &context, .page = &page};
    const struct bhi_driver_limits *limits = &driver.info->limits;
    const rlim_t files = lacking == 4 ? limits->descriptors + 100 : limits->descriptors / 2;
    const rlim_t bytes = lacking == 3 ? RLIM_INFINITY : limits->file_bytes;
    BHT_EQ(__real_setrlimit(RLIMIT_NOFILE, &(struct rlimit){files, files}), 0);
    BHT_EQ(__real_setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}), 0);
    pretend.pretended = true;
    pretend.refuses = lacking != 2;
    pretend.of[RLIMIT_CORE].rlim_max = lacking == 1;
    bhi_try_rlimits(&victim);
    _exit(page.holds ? 10 : 11);
}

/* A probe of the doctor's: it takes all of them for the layer to hold. */
TEST(one_limit_that_is_missing_is_seen) {
    for (lacking = 0; lacking <= 4; lacking++) {
        const int status = status_of(try_limits);
        BHT_TRUE(WIFEXITED(status));
        BHT_EQ(WEXITSTATUS(status), lacking ? 11 : 10);
    }
}

/* -- privileges -------------------------------------------------------------------------------- */

/* No exec and no change of ids brings a capability back, whatever a set-uid root program is. */
static void expect_locked_bits(void) {
    const int wanted = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                       SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                       SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    BHT_EQ(unshare(CLONE_NEWUSER), 0);
    BHT_EQ(bhi_sandbox_capabilities(&failure), 0);
    BHT_EQ(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0), wanted);
}

TEST(the_secure_bits_are_locked) {
    BHT_EQ(status_of(expect_locked_bits), 0);
}

/* -- Landlock ---------------------------------------------------------------------------------- */

static const char *folder;
static int loopback_port, abstract_socket;
static struct sockaddr_un abstract = {.sun_family = AF_UNIX};
static socklen_t abstract_length;

/* Sets errno. */
static int to_port(int (*call)(int, const struct sockaddr *, socklen_t), int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return call(fd, (const struct sockaddr *)&address, sizeof address);
}

static int to_abstract(void) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (const struct sockaddr *)&abstract, abstract_length);
}

/* The kernel says which rights it knows; those of later ones have to be refused, too. */
static void expect_refusals(void) {
    static const struct bhi_driver_path paths[] = {{"sub", BHI_PATH_READ},
                                                   {"/dev/null", BHI_PATH_DEVICE},
                                                   {"/proc", BHI_PATH_PROC},
                                                   {NULL, BHI_PATH_READ}};
    static const struct bhi_driver_info info = {.paths = paths};
    const struct bhi_driver some = {.info = &info};
    const int abi = bhi_sandbox_landlock_abi();
    bool applied = false;
    BHT_EQ(chdir(folder), 0);
    BHT_EQ(bhi_sandbox_no_new_privs(&failure), 0);
    BHT_EQ(bhi_sandbox_landlock(&some, NULL, &applied, &failure), 0);
    BHT_TRUE(applied);
    BHT_GE(open("sub/empty", O_RDONLY | O_CLOEXEC), 0);
    BHT_GE(open("/dev/null", O_RDWR | O_CLOEXEC), 0);
#define REFUSED(since, error, call)                                                                \
    do {                                                                                           \
        errno = 0;                                                                                 \
        if (abi >= (since) && ((call) >= 0 || errno != (error))) {                                 \
            BHT_FAIL("not refused: %s (%s)", #call, strerror(errno));                              \
        }                                                                                          \
    } while (0)
    REFUSED(1, EACCES, open("file", O_RDONLY | O_CLOEXEC));
    REFUSED(1, EACCES, open("file", O_WRONLY | O_CLOEXEC));
    REFUSED(1, EACCES, open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REFUSED(1, EACCES, open("sub/empty", O_WRONLY | O_CLOEXEC));
    REFUSED(1, EACCES, open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
    REFUSED(1, EACCES, unlink("file"));
    REFUSED(1, EACCES, rmdir("sub"));
    REFUSED(1, EACCES, mkdir("new", 0700));
    REFUSED(1, EACCES, mknod("new", S_IFREG | 0600, 0));
    REFUSED(1, EACCES, mknod("new", S_IFIFO | 0600, 0));
    REFUSED(1, EACCES, symlink("file", "new"));
    REFUSED(1, EACCES, execl("file", "file", NULL));
    REFUSED(2, EACCES, rename("file", "sub/file"));
    REFUSED(3, EACCES, truncate("file", 0));
    REFUSED(4, EACCES, to_port(connect, loopback_port));
    REFUSED(4, EACCES, to_port(bind, 0));
    REFUSED(6, EPERM, to_abstract());
    REFUSED(6, EPERM, kill(getppid(), 0));
    BHT_EQ(kill(getpid(), 0), 0);
}

TEST(landlock_refuses_all_that_the_kernel_can) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    if (bhi_sandbox_landlock_abi() == 0) {
        printf("  this kernel has no Landlock\n");
        return;
    }
    folder = bht_folder();
    bht_put("#!/bin/true\n", "%s/file", folder);
    bht_put("", "%s/sub/empty", folder);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    BHT_EQ(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    BHT_EQ(listen(listener, 1), 0);
    BHT_EQ(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    loopback_port = ntohs(address.sin_port);
    abstract_socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    abstract_length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                    (size_t)snprintf(abstract.sun_path + 1, 64, "bulkhead-test-%d", (int)getpid()));
    BHT_EQ(bind(abstract_socket, (struct sockaddr *)&abstract, abstract_length), 0);
    BHT_EQ(listen(abstract_socket, 1), 0);
    BHT_EQ(status_of(expect_refusals), 0);
    close(listener);
    close(abstract_socket);
}

/* -- filters ----------------------------------------------------------------------------------- */

static long bad_number;

static void *call_it(void *unused) {
    syscall(bad_number, -1L, -1L, -1L, -1L);
    return unused;
}

/* In a thread: what ends the thread alone would leave the worker without it. */
static void call_in_thread(void) {
    pthread_t thread;
    if (bhi_sandbox_no_new_privs(&failure) == 0 &&
        bhi_sandbox_seccomp(BHI_FILTER_START, &driver, &failure) == 0 &&
        pthread_create(&thread, NULL, call_it, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}

TEST(a_forbidden_call_ends_all_threads) {
    static const long numbers[] = {
        SYS_socket,
#ifdef __x86_64__
        0x40000000L | SYS_getpid, /* x32 */
#endif
    };
    for (size_t i = 0; i < BHT_COUNT(numbers); i++) {
        bad_number = numbers[i];
        const int status = status_of(call_in_thread);
        BHT_TRUE(WIFSIGNALED(status));
        BHT_EQ(WTERMSIG(status), SIGSYS);
    }
}

/* -- the root ---------------------------------------------------------------------------------- */

#define SHUT (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC)

static void expect_mount(const char *path, unsigned long wanted) {
    struct statvfs about;
    if (statvfs(path, &about) != 0) {
        BHT_FAIL("%s: %s", path, strerror(errno));
    }
    if ((about.f_flag & SHUT) != wanted) {
        BHT_FAIL("%s is mounted with %lx of %x, not with %lx", path, about.f_flag & SHUT, SHUT,
                 wanted);
    }
}

static char read_path[128], sub_path[128], libs_path[128];
static bool refuses_proc; /* as in a container that covers parts of its own */

BHT_WRAP(int, mount, const char *source, const char *target, const char *type, unsigned long flags,
         const void *data) {
    if (refuses_proc && type && strcmp(type, "proc") == 0) {
        errno = EPERM;
        return -1;
    }
    return __real_mount(source, target, type, flags, data);
}

/* What the host looks at the workers through: a proc of this namespace alone, or its own. */
static void expect_proc(void) {
    int proc, error;
    char self[16] = "";
    BHT_EQ(bhi_sandbox_proc(&proc, &error, &failure), 0);
    BHT_TRUE(!refuses_proc || error == EPERM);
    BHT_GT(readlinkat(proc, "self", self, sizeof self - 1), 0);
    BHT_EQ(strcmp(self, "1") == 0, error == 0);
    close(proc);
}

static void expect_root(void) {
    struct bhi_driver_path paths[] = {
        {read_path, BHI_PATH_READ},     {libs_path, BHI_PATH_LIBS}, {"/dev/null", BHI_PATH_DEVICE},
        {"/dev/zer[o]", BHI_PATH_NODE}, {"/proc", BHI_PATH_PROC},   {NULL, BHI_PATH_READ}};
    const struct bhi_driver_info info = {.name = "none", .paths = paths};
    const struct bhi_driver none = {.info = &info};
    int tree;
    BHT_EQ(mount("none", sub_path, "tmpfs", 0, NULL), 0);
    BHT_EQ(bhi_sandbox_root_begin(folder, &tree, &failure), 0);
    expect_proc();
    if (bhi_sandbox_root(&none, tree, &failure) != 0) {
        BHT_FAIL("%s", bhi_error_line(&failure));
    }
    expect_mount("/", SHUT);
    expect_mount(BHI_SANDBOX_RUN, SHUT);
    expect_mount(read_path, SHUT);
    expect_mount(sub_path, SHUT); /* what is mounted below */
    expect_mount("/proc", SHUT);
    expect_mount(libs_path, ST_RDONLY | ST_NOSUID | ST_NODEV); /* code is mapped from there */
    expect_mount("/dev/null", ST_NOSUID | ST_NOEXEC);
    expect_mount("/dev/zero", ST_NOSUID | ST_NOEXEC);
    BHT_EQ(access(BHI_SANDBOX_RUN "/here", F_OK), 0);
    BHT_TRUE(chdir("..") == 0 && access("etc/passwd", F_OK) != 0 && access("dev/full", F_OK) != 0);
    BHT_EQ(umask(0), 077);
}

/* In namespaces of their own. */
static void expect_in_namespaces(void (*act)(void)) {
    const struct bhi_sandbox_ids ids = {.user = geteuid(), .group = getegid(), .own = true};
    int go[2], pidfd, status;
    uint64_t layers;
    char byte;
    BHT_EQ(pipe2(go, O_CLOEXEC), 0);
    const pid_t pid = bhi_sandbox_clone(&pidfd, &layers, &failure);
    BHT_GE(pid, 0);
    if (pid == 0) {
        BHT_EQ(read(go[0], &byte, 1), 1);
        act();
        _exit(0);
    }
    BHT_EQ(bhi_sandbox_map_ids(pid, &ids, &failure), 0);
    BHT_EQ(write(go[1], "g", 1), 1);
    BHT_EQ(waitpid(pid, &status, 0), pid);
    BHT_EQ(status, 0);
    close(go[0]);
    close(go[1]);
    close(pidfd);
}

TEST(each_path_is_mounted_for_its_purpose) {
    const char *tables = bht_folder();
    folder = bht_folder();
    bht_put("", "%s/here", folder);
    bht_put("", "%s/read/sub/file", tables);
    bht_put("", "%s/libs/file", tables);
    snprintf(read_path, sizeof read_path, "%s/read", tables);
    snprintf(sub_path, sizeof sub_path, "%s/read/sub", tables);
    snprintf(libs_path, sizeof libs_path, "%s/libs", tables);
    for (int i = 0; i < 2; i++) {
        refuses_proc = i == 1;
        expect_in_namespaces(expect_root);
    }
}

/* -- namespaces, where the kernel or a container refuses some --------------------------------------- */

#define ALL_NAMESPACES                                                                             \
    (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS)

/* What clone answers, one call after the other; 0: it makes a process. */
static struct {
    bool pretended;
    int errors[2];
    unsigned calls;
    unsigned long flags;
} cloned;

/* It reads arguments that not every caller has given. */
__attribute__((no_sanitize_address)) long __wrap_syscall(long number, ...);
BHT_WRAP(long, syscall, long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (size_t i = 0; i < BHT_COUNT(a); i++) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    if (number != SYS_clone || !cloned.pretended) {
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    cloned.flags = (unsigned long)a[0];
    errno = cloned.errors[cloned.calls++];
    return errno != 0 ? -1 : 4242;
}

/* Without the optional one the zygote starts, and does not say that it has it; without another it does
 * not start. */
TEST(only_a_cgroup_namespace_may_be_missing) {
    static const struct {
        int errors[2];
        unsigned calls;
        bool starts, has_it;
    } cases[] = {{{0, 0}, 1, true, true},
                 {{EINVAL, 0}, 2, true, false},
                 {{EINVAL, EPERM}, 2, false, false},
                 {{EPERM, 0}, 1, false, false}};
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        int pidfd;
        uint64_t layers = 0;
        memset(&cloned, 0, sizeof cloned);
        memcpy(cloned.errors, cases[i].errors, sizeof cloned.errors);
        cloned.pretended = true;
        const pid_t pid = bhi_sandbox_clone(&pidfd, &layers, &failure);
        cloned.pretended = false;
        BHT_EQ(cloned.calls, cases[i].calls);
        BHT_EQ(cloned.flags & ALL_NAMESPACES, ALL_NAMESPACES);
        BHT_EQ(pid > 0, cases[i].starts);
        BHT_EQ((cloned.flags & CLONE_NEWCGROUP) != 0, cases[i].calls == 1);
        BHT_EQ((layers & BHI_LAYER_BIT(CGROUPNS)) != 0, cases[i].has_it);
        BHT_EQ((layers & BHI_LAYER_BIT(USERNS)) != 0, cases[i].starts);
    }
}

/* -- what the host hands on -------------------------------------------------------------------- */

static void expect_default(int signal_number) {
    struct sigaction action;
    BHT_EQ(sigaction(signal_number, NULL, &action), 0);
    const bool ignored = signal_number == SIGPIPE || signal_number == SIGHUP;
    BHT_TRUE(action.sa_handler == (ignored ? SIG_IGN : SIG_DFL));
}

/* A host that has its own of everything. */
static void expect_forgotten(void) {
    int pair[2];
    sigset_t mask;
    char here[16];
    struct rlimit limit;
    const struct {
        int resource;
        rlim_t own, most;
    } limits[] = {{RLIMIT_NOFILE, 64, RLIM_INFINITY},
                  {RLIMIT_CPU, 1000, RLIM_INFINITY},
                  {RLIMIT_STACK, 1 << 20, 8 << 20},
                  {RLIMIT_CORE, 0, 0}};
    BHT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    const int high = fcntl(pair[0], F_DUPFD, 20);
    BHT_EQ(dup2(high, BHI_HOST_SOCKET), BHI_HOST_SOCKET);
    for (size_t i = 0; i < BHT_COUNT(limits); i++) {
        BHT_EQ(getrlimit((__rlimit_resource_t)limits[i].resource, &limit), 0);
        limit.rlim_cur = limits[i].own < limit.rlim_max ? limits[i].own : limit.rlim_max;
        BHT_EQ(setrlimit((__rlimit_resource_t)limits[i].resource, &limit), 0);
    }
    for (int signal_number = 1; signal_number < 32; signal_number++) {
        (void)signal(signal_number, SIG_IGN);
    }
    sigfillset(&mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    umask(0);
    BHT_EQ(chdir("/tmp"), 0);
    close(0);
    BHT_TRUE(bhi_host_forget());
    for (int signal_number = 1; signal_number < 32; signal_number++) {
        expect_default(signal_number);
    }
    sigprocmask(SIG_SETMASK, NULL, &mask);
    BHT_TRUE(sigisemptyset(&mask));
    BHT_EQ(umask(0), 077);
    BHT_EQ(getpgrp(), getpid());
    BHT_TRUE(getcwd(here, sizeof here) && strcmp(here, "/") == 0);
    for (size_t i = 0; i < BHT_COUNT(limits); i++) {
        BHT_EQ(getrlimit((__rlimit_resource_t)limits[i].resource, &limit), 0);
        BHT_EQ(limit.rlim_cur, limit.rlim_max < limits[i].most ? limit.rlim_max : limits[i].most);
    }
    for (int fd = 0; fd < 64; fd++) {
        BHT_EQ(fcntl(fd, F_GETFD) >= 0, fd <= BHI_HOST_SOCKET);
    }
    BHT_TRUE((fcntl(BHI_HOST_SOCKET, F_GETFL) & O_NONBLOCK) != 0);
    BHT_TRUE((fcntl(BHI_HOST_SOCKET, F_GETFD) & FD_CLOEXEC) != 0);
    close(BHI_HOST_SOCKET);
    BHT_TRUE(!bhi_host_forget());
}

TEST(nothing_of_the_hosts_own_is_kept) {
    BHT_EQ(status_of(expect_forgotten), 0);
}
