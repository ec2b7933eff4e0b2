#include "worker/host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define STACK ((rlim_t)8 << 20) /* Linux's own default */

/* Signal dispositions, signal mask, process group, folder and limit are the host's, and are all
 * reset. An ignored SIGCHLD, for example, would make the kernel reap the zygote before the warden
 * can. */
static void reset(void) {
    for (int signal_number = 1; signal_number < NSIG; signal_number++) {
        (void)signal(signal_number, SIG_DFL);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    /* Comes when the host ends and a stopped worker is in our group. */
    (void)signal(SIGHUP, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0); /* so that a terminal's Ctrl-C reaches only the host, which then ends us */
    if (chdir("/") != 0) {
        /* Harmless: the process stays in the host's folder, which keeps a mount busy. */
    }
    umask(077);
}

/* Raises each soft limit to the hard one. A soft limit is the host's own, perhaps for a time, but
 * all workers would inherit it for as long as their zygote lives: RLIMIT_CPU would end a worker
 * that has served many submissions, a small stack would end a compile. In an opener, each file
 * whose close() hangs keeps its descriptor. */
static void raise_limits(void) {
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        struct rlimit limit;
        if (resource == RLIMIT_CORE || getrlimit((__rlimit_resource_t)resource, &limit) != 0) {
            continue;
        }
        /* An endless recursion ends at the limit of the stack, so that one has a bound. */
        const rlim_t most =
            resource == RLIMIT_STACK && limit.rlim_max > STACK ? STACK : limit.rlim_max;
        if (limit.rlim_cur < most) {
            limit.rlim_cur = most;
            (void)setrlimit((__rlimit_resource_t)resource, &limit);
        }
    }
}

/* A host may have closed its standard streams. Files that we open must not get these numbers: the
 * sandbox puts /dev/null there. */
static void hold_standard_streams(void) {
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

bool bhi_host_forget(void) {
    raise_limits();
    reset();
    hold_standard_streams();
    return close_range(BHI_HOST_SOCKET + 1, ~0u, 0) == 0 &&
           fcntl(BHI_HOST_SOCKET, F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(BHI_HOST_SOCKET, F_SETFD, FD_CLOEXEC) == 0;
}

int bhi_host_drop_streams(struct bhi_error *failure) {
#if BHI_SANITIZED
    const int last = 1;
#else
    const int last = 2;
#endif
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "open /dev/null", .sys_errno = errno);
    }
    for (int fd = 0; fd <= last; fd++) {
        if (null != fd && dup2(null, fd) < 0) {
            return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "replace a descriptor",
                             .value = (uint64_t)fd, .sys_errno = errno);
        }
    }
    if (null > 2) {
        close(null);
    }
    return 0;
}
