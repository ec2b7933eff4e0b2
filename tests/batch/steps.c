/* Kills the program at a step of batch/runner/step.h: BULKHEAD_TEST_STEP=NAME:N, at the Nth time
 * that it gets there. At "stage_…" it gets a SIGTERM instead, and goes on when it has acted on
 * it. Part of the test's build of the program only.
 *
 * BULKHEAD_TEST_FSYNC=PATH: what is at PATH cannot be made durable. BULKHEAD_TEST_TRACE=FILE: gets
 * a line for each step, and one for each fsync, with the name of what was made durable. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "batch/runner/step.h"

/* The linker has them call each other (--wrap). */
int __real_fsync(int fd);
int __wrap_fsync(int fd);

static void trace(const char *what, const char *name) {
    const char *path = getenv("BULKHEAD_TEST_TRACE");
    const int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0 && dprintf(fd, "%s %s\n", what, name) < 0) {
        abort();
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void trace_fsync(int fd) {
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(path, '/');
    trace("fsync", slash ? slash + 1 : path);
}

int __wrap_fsync(int fd) {
    trace_fsync(fd);
    struct stat wanted, found;
    const char *path = getenv("BULKHEAD_TEST_FSYNC");
    if (!path || stat(path, &wanted) != 0 || fstat(fd, &found) != 0 ||
        wanted.st_dev != found.st_dev || wanted.st_ino != found.st_ino) {
        return __real_fsync(fd);
    }
    errno = EPERM;
    return -1;
}

static sem_t stopped;

__attribute__((constructor)) static void prepare(void) {
    if (sem_init(&stopped, 0, 0) != 0) {
        abort();
    }
}

static void meet_signal(void) {
    struct timespec end;
    const char *value = getenv("BULKHEAD_TEST_SLOWNESS");
    const long slowness = value && atol(value) > 1 ? atol(value) : 1;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 60 * slowness; /* then the test fails by what comes next */
    kill(getpid(), SIGTERM);
    (void)!sem_timedwait(&stopped, &end);
}

void bhi_batch_step(const char *name) {
    static _Atomic unsigned long passed;
    const char *wanted = getenv("BULKHEAD_TEST_STEP");
    const size_t length = strlen(name);
    trace("step", name);
    if (!strcmp(name, "stopped")) {
        sem_post(&stopped);
    }
    if (!wanted || strncmp(wanted, name, length) != 0 || wanted[length] != ':') {
        return;
    }
    if (atomic_fetch_add(&passed, 1) + 1 == strtoul(wanted + length + 1, NULL, 10)) {
        if (!strncmp(name, "stage_", 6)) {
            meet_signal();
        } else {
            kill(getpid(), SIGKILL);
        }
    }
}
