#include "supervisor/worker/proc_status.h"
#include "base/read_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 256
/* Threads may start during the check. It is complete after a pass that meets no new thread. */
#define MAX_PASSES 16

struct field {
    const char *name; /* with its colon */
    uint64_t wanted;
    int base;
};

static const struct field FIELDS[] = {
    {"NoNewPrivs:", 1, 10}, {"Seccomp:", 2, 10}, {"CapInh:", 0, 16}, {"CapPrm:", 0, 16},
    {"CapEff:", 0, 16},     {"CapBnd:", 0, 16},  {"CapAmb:", 0, 16},
};
#define FIELD_COUNT (sizeof(FIELDS) / sizeof(FIELDS[0]))

static void say(char *why, size_t why_size, const char *text) {
    if (why && why_size > 0) {
        snprintf(why, why_size, "%s", text);
    }
}

/* Returns the value of the line that begins with |name|, or NULL. */
static const char *find_field(const char *text, const char *name) {
    size_t length = strlen(name);
    for (const char *line = text; line && *line != '\0';) {
        if (strncmp(line, name, length) == 0) {
            return line + length + strspn(line + length, " \t");
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return NULL;
}

static bool exited(int pidfd) {
    struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLIN) != 0;
}

pid_t bhi_pidfd_pid_in(int pidfd, bool inside) {
    char path[64], text[1024];
    /* Not /proc/self: it is that of our first thread, and empty once that has ended. */
    snprintf(path, sizeof path, "/proc/thread-self/fdinfo/%d", pidfd);
    ssize_t length = bhi_read_text(AT_FDCWD, path, text, sizeof text);
    if (length < 0) {
        return length == -ENOENT ? -EBADF : (pid_t)length;
    }
    const char *value = find_field(text, inside ? "NSpid:" : "Pid:");
    if (!value) {
        return -EBADF; /* another kind of descriptor */
    }
    char *end;
    long pid = strtol(value, &end, 10);
    while (*end == '\t') { /* NSpid: one for each namespace, ours first */
        pid = strtol(end, &end, 10);
    }
    /* -1: the process was reaped; 0: it is not in our pid namespace, so it has no number here
     * either. */
    return pid > 0 ? (pid_t)pid : 0;
}

pid_t bhi_pidfd_pid(int pidfd) {
    return bhi_pidfd_pid_in(pidfd, false);
}

static int check_thread(const struct bhi_proc_place *place, pid_t thread, char *why,
                        size_t why_size) {
    char path[64], text[8192];
    snprintf(path, sizeof path, "%d/task/%d/status", (int)place->pid, (int)thread);
    ssize_t length = bhi_read_text(place->proc, path, text, sizeof text);
    if (length < 0) {
        return (int)length;
    }
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const char *value = find_field(text, FIELDS[i].name);
        char shown[48] = "absent";
        if (value) {
            char *end;
            uint64_t number = strtoull(value, &end, FIELDS[i].base);
            if (end != value && number == FIELDS[i].wanted) {
                continue;
            }
            snprintf(shown, sizeof shown, "%.*s", (int)strcspn(value, "\n"), value);
        }
        if (why && why_size > 0) {
            snprintf(why, why_size, "thread %d of worker %d: %s is %s, must be %llu", (int)thread,
                     (int)place->pid, FIELDS[i].name, shown, (unsigned long long)FIELDS[i].wanted);
        }
        return -EPERM;
    }
    return 0;
}

struct seen {
    pid_t threads[MAX_THREADS];
    size_t count;
};

static bool has_seen(const struct seen *seen, pid_t thread) {
    for (size_t i = 0; i < seen->count; i++) {
        if (seen->threads[i] == thread) {
            return true;
        }
    }
    return false;
}

/* Checks each thread that has not been checked yet. Returns their number, or -errno. */
static int check_pass(DIR *tasks, const struct bhi_proc_place *place, struct seen *seen, char *why,
                      size_t why_size) {
    int fresh = 0;
    rewinddir(tasks);
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(tasks);
        if (!entry) {
            return errno != 0 ? -errno : fresh;
        }
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        if (thread <= 0 || has_seen(seen, thread)) {
            continue;
        }
        if (seen->count == MAX_THREADS) {
            say(why, why_size, "the worker has more threads than a worker may have");
            return -EPERM;
        }
        int result = check_thread(place, thread, why, why_size);
        if (result == -ENOENT || result == -ESRCH) {
            continue; /* the thread has ended meanwhile; threads that it started are in the list */
        }
        if (result != 0) {
            return result;
        }
        seen->threads[seen->count++] = thread;
        fresh++;
    }
}

/* Returns 0 if |place| is now that of the live process of |pidfd|; -ESRCH if it is not; or
 * -errno. */
static int check_identity(const struct bhi_proc_place *place, int pidfd) {
    pid_t named = bhi_pidfd_pid_in(pidfd, place->inside);
    if (named < 0) {
        return named;
    }
    return named == place->pid && !exited(pidfd) ? 0 : -ESRCH;
}

int bhi_proc_status_check(const struct bhi_proc_place *place, int pidfd, char *why,
                          size_t why_size) {
    say(why, why_size, "");
    int result = check_identity(place, pidfd);
    if (result != 0) {
        return result;
    }
    DIR *tasks = bhi_proc_place_threads(place);
    if (!tasks) {
        result = -errno;
        return check_identity(place, pidfd) == 0 ? result : -ESRCH;
    }
    struct seen seen = {.count = 0};
    result = -EAGAIN;
    for (int pass = 0; pass < MAX_PASSES; pass++) {
        int fresh = check_pass(tasks, place, &seen, why, why_size);
        if (fresh <= 0) {
            result = fresh;
            break;
        }
    }
    closedir(tasks);
    if (result == -EAGAIN) {
        say(why, why_size, "the worker starts threads faster than they can be looked at");
        result = -EPERM;
    }
    /* If another process has taken over the number, the result is not about the worker. */
    int identity = check_identity(place, pidfd);
    if (identity != 0) {
        say(why, why_size, "");
        return identity;
    }
    return result == 0 && seen.count == 0 ? -ESRCH : result;
}

/* Returns the state in a process's stat file, as proc(5) names it; 0: that is not known. */
static char read_state(int folder, const char *path) {
    char text[512];
    const char *rest =
        bhi_read_text(folder, path, text, sizeof text) < 0 ? NULL : strrchr(text, ')');
    return rest && rest[1] == ' ' ? rest[2] : '\0';
}

bool bhi_proc_is_runnable(pid_t pid) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return read_state(AT_FDCWD, path) == 'R';
}

bool bhi_proc_is_stopped(const struct bhi_proc_place *place) {
    char path[32];
    snprintf(path, sizeof path, "%d/stat", (int)place->pid);
    return place->pid > 0 && read_state(place->proc, path) == 'T';
}

static uint64_t read_clock(clockid_t clock) {
    struct timespec time;
    return clock_gettime(clock, &time) != 0
               ? 0
               : (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

uint64_t bhi_proc_cpu_ns(pid_t pid) {
    clockid_t clock;
    return pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 ? 0 : read_clock(clock);
}

/* The lowest bits of a process's clock say what it counts: 0 is user and system time, in ticks. */
uint64_t bhi_proc_limited_ns(pid_t pid) {
    return pid <= 0 ? 0 : read_clock((clockid_t)(~(unsigned)pid << 3));
}
