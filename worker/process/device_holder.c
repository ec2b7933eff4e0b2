#include "worker/process/device_holder.h"

#include "ipc/fdpass.h"
#include "worker/exit.h"
#include "worker/title.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- the holder -------------------------------------------------------------------------------- */

static _Noreturn void hold(int socket) {
    sigset_t none; /* because the zygote blocks SIGCHLD */
    sigemptyset(&none);
    bhi_title_set("bh-devholder", "device holder");
    /* It has no other copy of what another worker, or the zygote, has open. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != 1 ||
        (socket > 0 && close_range(0, (unsigned)socket - 1, 0) != 0) ||
        close_range((unsigned)socket + 1, ~0u, 0) != 0) {
        _exit(BHI_EXIT_START_FAILED);
    }
    for (;;) {
        char byte;
        int fds[BHI_FDPASS_MAX]; /* stay open */
        size_t count = BHI_FDPASS_MAX;
        if (bhi_fdpass_recv(socket, &byte, sizeof byte, fds, &count, 0) <= 0) {
            break;
        }
    }
    close(socket);
    for (;;) {
        sigsuspend(&none);
    }
}

pid_t bhi_device_holder_start(int socket) {
    pid_t pid = fork();
    if (pid == 0) {
        hold(socket);
    }
    return pid < 0 ? -errno : pid;
}

/* -- the worker -------------------------------------------------------------------------------- */

static void add(struct bhi_device_files *files, const char *path) {
    struct stat status;
    if (files->count < sizeof files->of / sizeof *files->of && stat(path, &status) == 0) {
        files->of[files->count].device = status.st_dev;
        files->of[files->count++].inode = status.st_ino;
    }
}

void bhi_device_files_list(struct bhi_device_files *files, const struct bhi_driver_info *driver,
                           const char *node, const struct bhi_nodes *nodes) {
    files->count = 0;
    for (const struct bhi_driver_path *path = driver->paths; path->pattern; path++) {
        if (path->kind == BHI_PATH_DEVICE) {
            add(files, path->pattern);
        }
    }
    if (node) {
        add(files, node);
    }
    for (unsigned i = 0; !node && i < nodes->count; i++) {
        add(files, nodes->paths[i]);
    }
}

static bool is_one(const struct bhi_device_files *files, int fd) {
    struct stat status;
    const bool known = fstat(fd, &status) == 0;
    for (unsigned i = 0; known && i < files->count; i++) {
        if (files->of[i].device == status.st_dev && files->of[i].inode == status.st_ino) {
            return true;
        }
    }
    return false;
}

void bhi_device_files_send(const struct bhi_device_files *files, int socket, int end) {
    int fds[BHI_FDPASS_MAX];
    size_t count = 0;
    bool sent = true;
    for (int fd = 0; fd < end && sent; fd++) {
        if (fd != socket && is_one(files, fd)) {
            fds[count++] = fd;
        }
        if (count == BHI_FDPASS_MAX || (count > 0 && fd + 1 == end)) {
            sent = bhi_fdpass_send(socket, "", 1, fds, count) == 0;
            count = 0;
        }
    }
    close(socket);
}
