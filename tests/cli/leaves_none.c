/* leaves_none COMMAND...: runs a command and proves that it leaves no process behind.
 *
 * As the subreaper it inherits whatever the command orphans. The exit status is the command's
 * (128 plus the signal's number where one killed it), or 99 when something is still there five
 * seconds (times $BULKHEAD_TEST_SLOWNESS) after the command has ended.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 5, LEFT = 99, TROUBLE = 98 };

static void wake(int signal_number) {
    (void)signal_number;
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_handler = wake}; /* no SA_RESTART: it ends waitpid */
    int status = 0, result;
    if (argc < 2 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 ||
        sigaction(SIGALRM, &action, NULL) != 0) {
        return TROUBLE;
    }
    pid_t child = fork();
    if (child < 0) {
        return TROUBLE;
    }
    if (child == 0) {
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    while (waitpid(child, &status, 0) != child) {
        if (errno != EINTR) {
            return TROUBLE;
        }
    }
    result = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    const char *slowness = getenv("BULKHEAD_TEST_SLOWNESS");
    alarm(LIMIT_S * (slowness && atoi(slowness) > 1 ? (unsigned)atoi(slowness) : 1));
    for (;;) {
        pid_t orphan = waitpid(-1, NULL, 0);
        if (orphan < 0 && errno == ECHILD) {
            return result;
        }
        if (orphan < 0) {
            fprintf(stderr, "leaves_none: a process of %s is left\n", argv[1]);
            return LEFT;
        }
    }
}
