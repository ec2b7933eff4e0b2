/* Programs that a test starts. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void bht_spawn(struct bht_child *child, const char *const *argv) {
    child->output = memfd_create("output", MFD_CLOEXEC);
    if (child->output < 0) {
        BHT_FAIL("memfd_create: %s", strerror(errno));
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, child->output, 1);
    posix_spawn_file_actions_adddup2(&actions, child->output, 2);
    int error =
        posix_spawnp(&child->pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        BHT_FAIL("cannot start %s: %s", argv[0], strerror(error));
    }
}

int bht_finish(struct bht_child *child, unsigned milliseconds, char *out, size_t capacity) {
    milliseconds *= bht_slowness();
    int pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
    bool timed_out = poll(&poll_fd, 1, (int)milliseconds) == 0;
    if (timed_out) {
        kill(child->pid, SIGKILL);
    }
    int status = 0;
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
    }
    close(pidfd);
    char text[4096];
    if (!out || timed_out) {
        out = text;
        capacity = sizeof text;
    }
    ssize_t length = pread(child->output, out, capacity - 1, 0);
    out[length > 0 ? length : 0] = '\0';
    close(child->output);
    if (timed_out) {
        BHT_FAIL("a child did not end within %u ms; its output: %s", milliseconds, out);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int bht_run(const char *const *argv, char *out, size_t capacity) {
    struct bht_child child;
    bht_spawn(&child, argv);
    return bht_finish(&child, 60 * 1000, out, capacity);
}

const char *bht_program(const char *built) {
    static char paths[4][PATH_MAX]; /* a caller may need two at a time */
    static size_t turn;
    const char *folder = getenv("BHT_PROGRAMS");
    if (!folder) {
        return built;
    }
    char *path = paths[turn++ % BHT_COUNT(paths)];
    snprintf(path, PATH_MAX, "%s%s", folder, strrchr(built, '/'));
    return path;
}
