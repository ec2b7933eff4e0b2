#include "supervisor/worker/launch.h"
#include "base/detail.h"
#include "base/fd.h"
#include "base/runtime_parent.h"
#include "base/text.h"
#include "ipc/refusal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CREATE "bh_context_create"

#ifndef BHI_INSTALLED_WORKER
#error "BHI_INSTALLED_WORKER must name the installed bulkhead-worker"
#endif

/* Returns the folder from which the library, or the program that it is linked into, was loaded. */
static bool own_folder(char folder[PATH_MAX]) {
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)bhi_spawn_paths, &info) || !info.dli_fname) {
        return false;
    }
    char resolved[PATH_MAX];
    if (!realpath(info.dli_fname, resolved)) {
        return false;
    }
    char *slash = strrchr(resolved, '/');
    if (!slash) {
        return false;
    }
    *slash = 0;
    snprintf(folder, PATH_MAX, "%s", resolved);
    return true;
}

/* Looks for |program| in the folders around the library's. Malloced; NULL: there is none. */
static char *find_near(const char *program) {
    static const char *const places[] = {"", "/../bin", "/../libexec/bulkhead",
                                         "/../../libexec/bulkhead"};
    char folder[PATH_MAX], path[PATH_MAX + 64];
    for (size_t i = 0; own_folder(folder) && i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s%s/%s", folder, places[i], program);
        if (access(path, X_OK) == 0) {
            return strdup(path);
        }
    }
    return NULL;
}

/* *out_chosen: the option or variable that names the worker and has to be corrected if the worker
 * cannot be run; NULL: none does. */
static char *find_worker(const char *given, const char **out_chosen) {
    *out_chosen = "options.worker_path";
    if (given) {
        return strdup(given);
    }
    *out_chosen = "BULKHEAD_WORKER";
    const char *variable = secure_getenv("BULKHEAD_WORKER");
    if (variable && variable[0]) {
        return strdup(variable);
    }
    *out_chosen = NULL;
    char *near = find_near("bulkhead-worker");
    return near ? near : strdup(BHI_INSTALLED_WORKER);
}

/* The path of |worker| with "warden" for "worker" in the file's name. Malloced; NULL: the name has none. */
static char *beside(const char *worker) {
    const char *slash = strrchr(worker, '/');
    const char *at = strstr(slash ? slash : worker, "worker");
    char *path = NULL;
    if (at &&
        asprintf(&path, "%.*swarden%s", (int)(at - worker), worker, at + strlen("worker")) < 0) {
        return NULL;
    }
    return path;
}

static char *find_warden(const char *worker) {
    char *path = beside(worker);
    if (path && access(path, X_OK) == 0) {
        return path;
    }
    free(path);
    path = find_near("bulkhead-warden");
    return path ? path : beside(BHI_INSTALLED_WORKER);
}

/* access() also calls a folder executable. If this returns false, errno says what is wrong. */
static bool is_file(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) {
        return false;
    }
    errno = S_ISDIR(status.st_mode) ? EISDIR : EACCES;
    return S_ISREG(status.st_mode);
}

bool bhi_spawn_is_of_file(int error) {
    return error == ENOEXEC || error == EACCES || error == ENOENT || error == ENOTDIR ||
           error == EISDIR || error == ELOOP || error == ELIBBAD || error == EPERM;
}

static bh_status check_parent(const char *parent, bh_detail *detail) {
    if (strlen(parent) > BHI_RUNTIME_PARENT_MOST) {
        return BHI_FAIL(detail, CREATE, BH_REASON_TOO_LONG, "options.runtime_dir",
                        .limit = BHI_RUNTIME_PARENT_MOST);
    }
    if (!bhi_text_is_line(parent)) {
        return BHI_FAIL(detail, CREATE, BH_REASON_NOT_TEXT, "options.runtime_dir");
    }
    if (access(parent, W_OK | X_OK) != 0) {
        return BHI_FAIL(detail, CREATE, BH_REASON_FOLDER, parent, .sys_errno = errno,
                        .text = "cannot be written",
                        .advice = "set options.runtime_dir or XDG_RUNTIME_DIR");
    }
    BHI_AUTO_FD folder = bhi_runtime_parent_open(parent);
    if (folder < 0 && folder != -EPERM) {
        return BHI_FAIL(detail, CREATE, BH_REASON_FOLDER, parent, .sys_errno = -folder,
                        .text = "cannot be opened");
    }
    if (folder < 0) {
        struct stat status = {0};
        (void)stat(parent, &status);
        return BHI_FAIL(detail, CREATE, BH_REASON_FOLDER, parent, .sys_errno = EPERM,
                        .text = BHI_SAY("belongs to user %u (mode %04o), and others could replace "
                                        "files in it, or a link on the way to it",
                                        (unsigned)status.st_uid, (unsigned)status.st_mode & 07777),
                        .advice = "use a folder that only you can write to (options.runtime_dir), "
                                  "or a sticky folder of root");
    }
    return BH_OK;
}

bh_status bhi_spawn_paths(const bh_context_options *options, struct bhi_context_settings *out,
                          bh_detail *detail) {
    const char *chosen;
    out->worker_path = find_worker(options->worker_path, &chosen);
    out->warden_path = out->worker_path ? find_warden(out->worker_path) : NULL;
    out->worker_remedy =
        !chosen ? "install this library's bulkhead-worker there, or name it by "
                  "options.worker_path or BULKHEAD_WORKER"
        : options->worker_path
            ? "set options.worker_path to this library's bulkhead-worker, or to NULL"
            : "set BULKHEAD_WORKER to this library's bulkhead-worker, or unset it";
    out->runtime_parent =
        strdup(options->runtime_dir ? options->runtime_dir : bhi_runtime_parent());
    if (!out->worker_path || !out->warden_path || !out->runtime_parent) {
        return BHI_FAIL(detail, CREATE, BH_REASON_MEMORY);
    }
    if (access(out->worker_path, X_OK) != 0 || !is_file(out->worker_path)) {
        return BHI_FAIL(detail, CREATE, BH_REASON_NO_PROGRAM, out->worker_path,
                        .text = "the worker executable ", .sys_errno = errno,
                        .advice = out->worker_remedy);
    }
    if (access(out->warden_path, X_OK) != 0 || !is_file(out->warden_path)) {
        return BHI_FAIL(detail, CREATE, BH_REASON_NO_PROGRAM, out->warden_path, .sys_errno = errno,
                        .advice = BHI_WARDEN_REMEDY);
    }
    return check_parent(out->runtime_parent, detail);
}

/* Only the variables that drivers need are passed on. A value that does not fit is left out. */
#define VARIABLES 8

static void clean_environment(char *out[VARIABLES + 1], char storage[VARIABLES][PATH_MAX]) {
    static const char *const names[VARIABLES] = {
        "VK_DRIVER_FILES",    "VK_ICD_FILENAMES", "LD_LIBRARY_PATH", "BULKHEAD_TEST_FAULTS",
        "BULKHEAD_WORKER_ID", "BULKHEAD_NVRTC",   "CUDA_HOME",       "CUDA_PATH"};
    size_t count = 0;
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = secure_getenv(names[i]);
        if (!value) {
            continue;
        }
        int length = snprintf(storage[i], PATH_MAX, "%s=%s", names[i], value);
        if (length > 0 && length < PATH_MAX) {
            out[count++] = storage[i];
        }
    }
    out[count] = NULL;
}

#define TITLE_BYTES 80 /* "worker of " and a stream's name */

int bhi_spawn(const char *path, const char *mode, int socket, pid_t *out_pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) {
        return -error;
    }
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return -error;
    }
    char *environment[VARIABLES + 1];
    char storage[VARIABLES][PATH_MAX];
    clean_environment(environment, storage);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    /* The last entry is room for the titles that the processes give themselves (worker/title.h). */
    char room[TITLE_BYTES] = "";
    memset(room, '.', sizeof room - 1);
    char *argv[] = {(char *)(uintptr_t)path, (char *)(uintptr_t)mode, room, NULL};
    pid_t pid = -1;
    /* The process gets a process group of its own, because a Ctrl-C at the host's terminal is for
     * the host. It gets no session of its own, because the scheduler would then weigh it apart from
     * the host (autogroup). */
    if (!(error = posix_spawn_file_actions_adddup2(&actions, socket, 3)) &&
        !(error =
              posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                        POSIX_SPAWN_SETPGROUP)) &&
        !(error = posix_spawnattr_setsigmask(&attributes, &none)) &&
        !(error = posix_spawnattr_setsigdefault(&attributes, &all))) {
        error = posix_spawn(&pid, path, &actions, &attributes, argv, environment);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error) {
        return -error;
    }
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0) {
        error = -errno;
        kill(pid, SIGKILL); /* nothing would watch or reap the process */
        waitpid(pid, NULL, 0);
        return error;
    }
    *out_pid = pid;
    return pidfd;
}

void bhi_spawn_kill(int pidfd) {
    siginfo_t info;
    pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
    while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) != 0 && errno == EINTR)
        ;
    close(pidfd);
}

void bhi_spawn_reap(int pidfd) {
    /* ECHILD: the host reaps children itself, or ignores SIGCHLD. Both do no harm. */
    siginfo_t info;
    while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) != 0 && errno == EINTR)
        ;
}
