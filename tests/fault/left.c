/* Nothing is left behind of processes that a busy machine keeps from ending: an opener that was
 * killed, a warden that has its zygote to reap. The machine of the test need not be busy: what the
 * library asks about these processes is answered here (--wrap). */
#include "fixture.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    bool armed;
    pid_t pid;        /* the opener */
    int pidfd;        /* the library's, once it has killed it */
    unsigned looks;   /* how often the library has waited for its end */
    unsigned dies_at; /* the look at which it ends; 0: at none */
    bool lacks_only_a_processor;
} opener;

static struct {
    pid_t pid; /* the warden; 0: not of interest */
    unsigned asked;
} warden;

int __real_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned flags) {
    if (!opener.armed || signal != SIGKILL) {
        return __real_pidfd_send_signal(pidfd, signal, info, flags);
    }
    opener.pidfd = pidfd;
    return 0; /* it dies as soon as it gets a processor */
}

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
    if (!opener.armed || count != 1 || fds[0].fd != opener.pidfd) {
        return __real_poll(fds, count, timeout_ms);
    }
    if (++opener.looks != opener.dies_at) {
        fds[0].revents = 0;
        return 0; /* the time is over */
    }
    kill(opener.pid, SIGKILL);
    return __real_poll(fds, count, 20000 * (int)bht_slowness());
}

bool __real_bhi_proc_is_runnable(pid_t pid);
bool __wrap_bhi_proc_is_runnable(pid_t pid);
bool __wrap_bhi_proc_is_runnable(pid_t pid) {
    if (opener.armed) {
        return opener.lacks_only_a_processor;
    }
    if (pid == warden.pid) {
        warden.asked++;
        kill(pid, SIGCONT); /* now it gets a processor */
        return true;
    }
    return __real_bhi_proc_is_runnable(pid);
}

/* -- the opener -------------------------------------------------------------------------------- */

/* Ends a context whose opener has been killed and does not end. Returns how often the library has
 * waited for that. */
static unsigned killed(unsigned dies_at, bool lacks_only_a_processor) {
    bh_context *context = fx_context(NULL);
    bh_file_source source = {.struct_size = sizeof source};
    source.path = "/nonexistent/file.npy";
    source.format = BH_FILE_NPY;
    bh_buffer *buffer = NULL;
    BHT_EQ(fx_from_file(context, &source, &buffer, NULL), BH_LOAD_FAILED);
    opener.pid = bht_descendant_called(getpid(), "bh-opener");
    fx_kill(opener.pid, SIGSTOP); /* or it would end by itself: the library hangs up */
    WAIT_UNTIL(bht_process_state(opener.pid) == 'T', 20000);
    opener.looks = 0;
    opener.pidfd = -1;
    opener.dies_at = dies_at;
    opener.lacks_only_a_processor = lacks_only_a_processor;
    opener.armed = true;
    bh_context_destroy(context);
    opener.armed = false;
    return opener.looks;
}

static void kill_and_reap(void) {
    BHT_EQ(bht_count_children(getpid()), 1);
    kill(opener.pid, SIGKILL);
    BHT_EQ(waitpid(opener.pid, NULL, 0), opener.pid);
}

TEST(a_killed_opener_that_lacks_a_processor) {
    BHT_EQ(killed(3, true), 3);
    BHT_EQ(bht_count_children(getpid()), 0);
    /* At the first look, as a rule. */
    BHT_EQ(killed(1, false), 1);
    BHT_EQ(bht_count_children(getpid()), 0);
}

/* One that its system call holds is not waited for, and none for ever. */
TEST(a_killed_opener_that_does_not_end) {
    BHT_EQ(killed(0, false), 1);
    kill_and_reap();
    BHT_EQ(killed(0, true), 30);
    kill_and_reap();
}

/* -- the warden -------------------------------------------------------------------------------- */

/* A host that reaps no orphans: what it leaves comes to the test. */
static _Noreturn void be_host(void) {
    bh_context *context = fx_context(NULL);
    bh_stream *stream = fx_stream(context, "one", FX_SECONDS);
    fx_ready(stream);
    warden.pid = bht_descendant_called(getpid(), "bh-warden");
    kill(warden.pid, SIGSTOP); /* which reaps no zygote now */
    WAIT_UNTIL(bht_process_state(warden.pid) == 'T', 20000);
    bh_stream_release(stream);
    bh_context_destroy(context);
    BHT_EQ(warden.asked, 1);
    _exit(0);
}

TEST(a_warden_that_lacks_a_processor) {
    const pid_t host = fork();
    if (host == 0) {
        be_host();
    }
    int status;
    BHT_EQ(waitpid(host, &status, 0), host);
    BHT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    /* The zygote's zombie, if its warden was killed. */
    BHT_EQ(bht_count_descendants(getpid()), 0);
}
