#include "worker/host.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Signal dispositions, mask, group, folder and limit come from the host; none of them is ours. An
 * ignored SIGCHLD, for one, would have the kernel reap the zygote behind the warden's back. */
static void reset(void) {
    for (int signal_number = 1; signal_number < NSIG; signal_number++) {
        (void)signal(signal_number, SIG_DFL);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN); /* for a group with a stopped holder in it, when the host ends */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0); /* a terminal's Ctrl-C is for the host, which ends us in its own way */
    if (chdir("/") != 0) {
        /* Staying in the host's folder only pins a mount. */
    }
    umask(077);
    /* As many descriptors as may be. The host may be short of them just now, by its own doing, and
     * all workers would be for as long as their zygote lives; to an opener they are what files cost
     * that cannot be closed. */
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* A host may have closed its standard streams. What we open must not take their numbers: the
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
    reset();
    hold_standard_streams();
    return close_range(BHI_HOST_SOCKET + 1, ~0u, 0) == 0 &&
           fcntl(BHI_HOST_SOCKET, F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(BHI_HOST_SOCKET, F_SETFD, FD_CLOEXEC) == 0;
}
