#include "batch/slurm/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/fd.h"
#include "tool/clock.h"
#include "tool/interrupt.h"

extern char **environ;

enum { MOST_OUTPUT = 64 << 20, PIECE = 1 << 16 };
/* A signal that comes just before poll() is seen this much later. */
#define SLICE UINT64_C(100000000)

/* A user's defaults for formats, filters and files would change what is parsed here, and clusters
 * are not looked into. */
static bool is_dropped(const char *variable) {
    static const char *const names[] = {
        "SQUEUE_",           "SACCT_",        "SLURM_TIME_FORMAT=", "SBATCH_WAIT=",
        "SBATCH_DEBUG=",     "SCANCEL_",      "SLURM_DEBUG=",       "SBATCH_ARRAY_INX=",
        "SLURM_BITSTR_LEN=", "SBATCH_INPUT=", "SBATCH_ERROR=",      "SBATCH_CLUSTERS=",
        "SLURM_CLUSTERS="};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!strncmp(variable, names[i], strlen(names[i]))) {
            return true;
        }
    }
    return false;
}

static char **copy_environment(void) {
    size_t count = 0, kept = 0;
    while (environ[count]) {
        count++;
    }
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++) {
        if (!is_dropped(environ[i])) {
            copy[kept++] = environ[i];
        }
    }
    return copy;
}

static int start(const char *const *arguments, int kept_fd, int out, int error, pid_t *out_pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char **environment = copy_environment();
    int result = environment ? posix_spawn_file_actions_init(&actions) : ENOMEM;
    if (result) {
        free(environment);
        return result;
    }
    if ((result = posix_spawnattr_init(&attributes))) {
        posix_spawn_file_actions_destroy(&actions);
        free(environment);
        return result;
    }
    sigemptyset(&none);
    sigfillset(&all);
    (void)((result = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)) ||
           (result = posix_spawn_file_actions_adddup2(&actions, out, 1)) ||
           (result = posix_spawn_file_actions_adddup2(&actions, error, 2)) ||
           /* a descriptor that is copied to itself loses its close-on-exec */
           (kept_fd >= 0 &&
            (result = posix_spawn_file_actions_adddup2(&actions, kept_fd, kept_fd))) ||
           (result = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
                                                               POSIX_SPAWN_SETSIGDEF |
                                                               POSIX_SPAWN_SETPGROUP)) ||
           (result = posix_spawnattr_setsigmask(&attributes, &none)) ||
           (result = posix_spawnattr_setsigdefault(&attributes, &all)) ||
           (result = posix_spawnp(out_pid, arguments[0], &actions, &attributes,
                                  (char *const *)arguments, environment)));
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    return result;
}

/* Reads what is there. Returns false at the end of the pipe, or if there is too much. */
static bool take_output(int fd, struct bhi_program_result *result, size_t *capacity) {
    if (result->size >= MOST_OUTPUT ||
        !BHI_ARRAY_RESERVE(result->out, *capacity, result->size + PIECE + 1)) {
        result->in_time = false;
        return false;
    }
    const ssize_t got = read(fd, result->out + result->size, PIECE);
    result->size += got > 0 ? (size_t)got : 0;
    return got > 0 || (got < 0 && errno == EINTR);
}

/* All is read, so that the program can go on; what does not fit is dropped. */
static bool take_error(int fd, struct bhi_program_result *result, size_t *used) {
    char piece[512];
    const ssize_t got = read(fd, piece, sizeof piece);
    const size_t room = sizeof result->error - 1 - *used;
    if (got > 0) {
        const size_t taken = (size_t)got < room ? (size_t)got : room;
        memcpy(result->error + *used, piece, taken);
        *used += taken;
        result->error[*used] = '\0';
    }
    return got > 0 || (got < 0 && errno == EINTR);
}

/* Reads both pipes to their ends, or until the time is over. */
static void read_all(int out, int error, uint64_t limit_ns, bool ends_at_signal,
                     struct bhi_program_result *result) {
    struct pollfd waits[2] = {{.fd = out, .events = POLLIN}, {.fd = error, .events = POLLIN}};
    const uint64_t end = bhi_clock_ns() + limit_ns;
    size_t capacity = 0, used = 0;
    while (result->in_time && (waits[0].fd >= 0 || waits[1].fd >= 0)) {
        const uint64_t now = bhi_clock_ns();
        result->cut_off = ends_at_signal && bhi_interrupt_signal();
        if (now >= end || result->cut_off) {
            result->in_time = false;
            return;
        }
        const uint64_t slice = end - now < SLICE ? end - now : SLICE;
        if (poll(waits, 2, (int)(slice / 1000000u) + 1) <= 0) {
            continue;
        }
        if (waits[0].revents && !take_output(out, result, &capacity)) {
            waits[0].fd = -1;
        }
        if (waits[1].revents && !take_error(error, result, &used)) {
            waits[1].fd = -1;
        }
    }
}

void bhi_program_run(const char *const *arguments, int kept_fd, uint64_t limit_ns,
                     bool ends_at_signal, struct bhi_program_result *out_result) {
    int out[2] = {-1, -1}, error[2] = {-1, -1}, status = 0;
    pid_t pid = -1;
    *out_result = (struct bhi_program_result){.in_time = true, .status = -1};
    int why = pipe2(out, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0 ? errno : 0;
    if (!why) {
        why = start(arguments, kept_fd, out[1], error[1], &pid);
    }
    bhi_fd_close(&out[1]);
    bhi_fd_close(&error[1]);
    if (why) {
        snprintf(out_result->error, sizeof out_result->error, "%s: %s", arguments[0],
                 strerror(why));
    } else {
        out_result->started = true;
        read_all(out[0], error[0], limit_ns, ends_at_signal, out_result);
        if (!out_result->in_time) {
            (void)kill(-pid, SIGKILL);
        }
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        out_result->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    bhi_fd_close(&out[0]);
    bhi_fd_close(&error[0]);
    if (!out_result->out) {
        out_result->out = calloc(1, 1);
        out_result->size = 0;
    } else {
        out_result->out[out_result->size] = '\0';
    }
    out_result->in_time &= !!out_result->out;
}

void bhi_program_free(struct bhi_program_result *result) {
    free(result->out);
    result->out = NULL;
}
