#include "base/exiting.h"
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_exiting(pid_t pid) {
    const struct bhi_proc_place place = {open("/proc", O_RDONLY | O_DIRECTORY), false, pid};
    const bool exiting = bhi_is_exiting(&place);
    close(place.proc);
    return exiting;
}

/* Waits until the first thread of |pid| is a zombie. */
static void await_end(pid_t pid) {
    WAIT_UNTIL(bht_process_state(pid) == 'Z', 20000);
}

TEST(test_living_and_dead) {
    const pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    BHT_TRUE(!is_exiting(getpid()));
    BHT_TRUE(!is_exiting(pid));
    BHT_EQ(kill(pid, SIGKILL), 0);
    WAIT_UNTIL(is_exiting(pid), 20000); /* a sanitizer's own thread may outlive the first one */
    BHT_EQ(waitpid(pid, NULL, 0), pid);
}

static void *go_on(void *unused) {
    while (pause() != 0) { /* until a signal kills it */
    }
    return unused;
}

/* A worker that was taken over can do that, and close its sockets: it is not dying. */
TEST(test_without_its_first_thread) {
    const pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, go_on, NULL) != 0) {
            _exit(1);
        }
        syscall(SYS_exit, 0);
    }
    await_end(pid);
    BHT_TRUE(bhi_first_thread_is_exiting(pid));
    BHT_TRUE(!is_exiting(pid));
    BHT_EQ(waitpid(pid, NULL, WNOHANG), 0);
    BHT_EQ(kill(pid, SIGKILL), 0);
    WAIT_UNTIL(is_exiting(pid), 20000);
    BHT_EQ(waitpid(pid, NULL, 0), pid);
}
