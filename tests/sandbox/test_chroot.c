/* A chroot is recognised, and named where namespaces cannot be made in it. */
#include "harness.h"
#include "ipc/chroot.h"
#include "worker/sandbox/sandbox.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FINE, NO_CHROOT, NOT_SEEN, CLONED, NOT_NAMED };

/* In a process of its own: there is no way out of a chroot. */
static _Noreturn void inside(const char *folder) {
    struct bhi_error failure = {0};
    uint64_t layers;
    int pidfd;
    if ((geteuid() != 0 && unshare(CLONE_NEWUSER) != 0) || chroot(folder) != 0 || chdir("/") != 0) {
        _exit(NO_CHROOT);
    }
    if (!bhi_in_chroot()) {
        _exit(NOT_SEEN);
    }
    pid_t pid = bhi_sandbox_clone(&pidfd, &layers, &failure);
    if (pid >= 0) {
        _exit(CLONED);
    }
    _exit(failure.told.sys_errno == EPERM && strstr(failure.told.text, "in a chroot") &&
                  strstr(failure.told.advice, "pivot_root")
              ? FINE
              : NOT_NAMED);
}

TEST(it_is_recognised) {
    char folder[] = "/tmp/bulkhead-chroot-XXXXXX";
    BHT_TRUE(mkdtemp(folder));
    pid_t pid = fork();
    BHT_GE(pid, 0);
    if (pid == 0) {
        inside(folder);
    }
    int status;
    BHT_EQ(waitpid(pid, &status, 0), pid);
    BHT_TRUE(WIFEXITED(status));
    BHT_EQ(WEXITSTATUS(status), FINE);
    BHT_EQ(rmdir(folder), 0);
}

TEST(nothing_is_said_outside) {
    BHT_TRUE(!bhi_in_chroot());
}
