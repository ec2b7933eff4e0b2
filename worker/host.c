#include "worker/host.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Signal dispositions, signal mask, process group, folder and limit are the host's, and are all
 * reset. An ignored SIGCHLD, for example, would make the kernel reap the zygote before the warden
 * can. */
static void reset(void) {
    for (int signal_number = 1; signal_number < NSIG; signal_number++) {
        (void)signal(signal_number, SIG_DFL);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    /* Comes when the host ends and a stopped memory holder is in our group. */
    (void)signal(SIGHUP, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0); /* so that a terminal's Ctrl-C reaches only the host, which then ends us */
    if (chdir("/") != 0) {
        /* Harmless: the process stays in the host's folder, which keeps a mount busy. */
    }
    umask(077);
    /* Takes as many descriptors as the hard limit allows. The host may have lowered its soft limit
     * for a time, but all workers would inherit that for as long as their zygote lives. In an
     * opener, each file whose close() hangs keeps its descriptor. */
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
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
    reset();
    hold_standard_streams();
    return close_range(BHI_HOST_SOCKET + 1, ~0u, 0) == 0 &&
           fcntl(BHI_HOST_SOCKET, F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(BHI_HOST_SOCKET, F_SETFD, FD_CLOEXEC) == 0;
}
