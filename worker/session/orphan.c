#include "worker/session/orphan.h"
#include "worker/exit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

static int warden_pipe;
static struct itimerval limit;

static void out_of_time(int signal_number) {
    (void)signal_number;
    _exit(BHI_EXIT_SUPERVISOR);
}

/* Other processes may send this signal, too, so the pipe decides. The kernel closes a dead
 * process's descriptors before it sends death signals to the children. */
static void look(int signal_number) {
    const int error = errno;
    struct pollfd warden = {.fd = warden_pipe, .events = 0};
    (void)signal_number;
    if (poll(&warden, 1, 0) == 1) {
        (void)setitimer(ITIMER_REAL, &limit, NULL);
    }
    errno = error;
}

int bhi_orphan_prepare(int go, unsigned limit_ms, struct bhi_error *failure) {
    struct sigaction action = {.sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    warden_pipe = go;
    limit.it_value.tv_sec = limit_ms / 1000;
    limit.it_value.tv_usec = limit_ms % 1000 * 1000;
    action.sa_handler = out_of_time;
    int r = sigaction(SIGALRM, &action, NULL);
    action.sa_handler = look;
    if (r != 0 || sigaction(SIGCONT, &action, NULL) != 0 || prctl(PR_SET_PDEATHSIG, SIGCONT) != 0) {
        return BHI_ERROR(failure, BH_REASON_SYSTEM_STEP, "prepare for the warden's end",
                         .sys_errno = errno);
    }
    look(SIGCONT); /* the warden may have died before */
    return 0;
}

void bhi_orphan_forget(void) {
    const struct itimerval none = {.it_value = {0}};
    (void)signal(SIGCONT, SIG_DFL);
    (void)signal(SIGALRM, SIG_DFL);
    (void)setitimer(ITIMER_REAL, &none, NULL);
}
