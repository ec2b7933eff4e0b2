#include "supervisor/worker/zygote.h"
#include "base/array.h"
#include "base/detail.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/format.h"
#include "base/futex.h"
#include "base/runtime_parent.h"
#include "ipc/compile.h"
#include "ipc/fdpass.h"
#include "supervisor/context/room.h"
#include "supervisor/worker/directory_lock.h"
#include "supervisor/worker/launch.h"
#include "supervisor/worker/words.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define START_TIMEOUT_NS (20ull * 1000000000)
#define MOST_NUMBER      4096 /* of descriptors: a table for more takes memory */

const char *bhi_zygote_loading(const struct bhi_zygote *zygote, char out[BHI_ZYGOTE_LOADING]) {
    if (zygote->state != BHI_ZYGOTE_STARTING || strcmp(zygote->requested, BHI_NVRTC) != 0) {
        return NULL;
    }
    const char *file = secure_getenv("BULKHEAD_NVRTC");
    const bool named = file && file[0];
    bhi_format(out, BHI_ZYGOTE_LOADING, "NVRTC has not loaded%s%.*s", named ? ", which is " : "",
               BHI_ZYGOTE_LOADING - 60, named ? file : "");
    return out;
}

void bhi_zygote_retain(struct bhi_zygote *zygote) {
    atomic_fetch_add_explicit(&zygote->refs, 1, memory_order_relaxed);
}

void bhi_zygote_release(struct bhi_zygote *zygote) {
    if (!zygote || atomic_fetch_sub_explicit(&zygote->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    bh_context *context = zygote->context;
    bhi_fd_close(&zygote->socket);
    bhi_fd_close(&zygote->pidfd);
    bhi_fd_close(&zygote->warden_pidfd);
    bhi_fd_close(&zygote->proc);
    bhi_fd_close(&zygote->runtime_lock);
    bhi_trace_fini(&zygote->trace);
    BHI_LIST_EACH_SAFE(node, &zygote->sentinels)
    free(BHI_CONTAINER(node, struct bhi_sentinel, link));
    free(zygote->leftovers);
    free(zygote);
    bhi_context_unref(context);
}

static const char *name_of(const struct bhi_zygote *zygote) {
    return strrchr(zygote->runtime_dir, '/') + 1;
}

/* Makes a folder that only this user can enter. Its name is random, so that no other process can
 * create it first. */
static int make_runtime_dir(struct bhi_zygote *zygote) {
    const char *path = zygote->context->settings.runtime_parent;
    BHI_AUTO_FD parent = bhi_runtime_parent_open(path);
    if (parent < 0) {
        return parent;
    }
    int lock_fd = -EEXIST;
    for (int attempt = 0; attempt < 16 && lock_fd == -EEXIST; attempt++) {
        snprintf(zygote->runtime_dir, sizeof zygote->runtime_dir, "%s/bulkhead-%d-%08x", path,
                 (int)getpid(), randombytes_random());
        lock_fd = bhi_directory_lock_make(parent, name_of(zygote), 0700);
    }
    if (lock_fd < 0) {
        zygote->runtime_dir[0] = 0;
        return lock_fd;
    }
    zygote->runtime_lock = lock_fd;
    return 0;
}

static void remove_runtime_dir(struct bhi_zygote *zygote) {
    if (zygote->runtime_lock >= 0) {
        (void)bhi_folder_remove(bhi_fd_steal(&zygote->runtime_lock), name_of(zygote));
        zygote->runtime_dir[0] = 0;
    }
}

/* Removes what hosts have left that were killed together with their wardens. This is done once for
 * each context, while its first zygote loads the driver, so that it does not delay the start. */
static void sweep(struct bhi_zygote *zygote) {
    bh_context *context = zygote->context;
    if (context->leftovers_removed) {
        return;
    }
    context->leftovers_removed = true;
    bhi_directory_lock_sweep_folders(context->settings.runtime_parent);
    char groups[sizeof zygote->cgroup.dir];
    snprintf(groups, sizeof groups, "%s", zygote->cgroup.dir);
    char *slash = strrchr(groups, '/');
    if (zygote->cgroup.version && slash && slash != groups) {
        *slash = 0;
        bhi_directory_lock_sweep_cgroups(groups);
    }
}

bool bhi_zygote_lacks_program(struct bhi_zygote *zygote, bool worker, int error) {
    const struct bhi_context_settings *settings = &zygote->context->settings;
    if (bhi_spawn_is_of_file(error)) {
        zygote->no_program = true;
        BHI_FAIL(&zygote->failure, "", BH_REASON_NO_PROGRAM,
                 worker ? settings->worker_path : settings->warden_path,
                 .text = worker ? "the worker executable " : NULL, .sys_errno = error,
                 .advice = worker ? settings->worker_remedy : BHI_WARDEN_REMEDY);
    }
    return zygote->no_program;
}

static int send_start(struct bhi_zygote *zygote, int program) {
    BHI_AUTO_FD self = pidfd_open(getpid(), 0);
    /* Opened again: a copy would share the lock, which says that we live. */
    BHI_AUTO_FD folder = openat(zygote->runtime_lock, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self < 0 || folder < 0) {
        return -errno;
    }
    struct bhi_message message = {.type = BHI_MSG_START};
    message.start.protocol = BHI_WIRE_VERSION;
    snprintf(message.start.driver, sizeof message.start.driver, "%s", zygote->requested);
    snprintf(message.start.runtime_dir, sizeof message.start.runtime_dir, "%s",
             zygote->runtime_dir);
    snprintf(message.start.cgroup_dir, sizeof message.start.cgroup_dir, "%s", zygote->cgroup.dir);
    return bhi_fdpass_send_message(zygote->socket, &message, (int[]){self, folder, program}, 3);
}

/* Moves |fd| to a high number. If this process dies, the kernel closes the highest first, and so
 * the warden learns of it (warden.c) before the descriptors of a GPU's memory are closed. */
static int above_others(int fd) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return fd;
    }
    const rlim_t most = limit.rlim_cur < MOST_NUMBER ? limit.rlim_cur : MOST_NUMBER;
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, (int)(most / 4 * 3));
    if (high < 0) {
        return fd;
    }
    close(fd);
    return high;
}

static int launch(struct bhi_zygote *zygote) {
    bh_context *context = zygote->context;
    int error = make_runtime_dir(zygote);
    if (error) {
        return error;
    }
    /* Without a usable cgroup RLIMIT_DATA limits the memory, and bulkhead doctor says why. */
    uint64_t serial = randombytes_random();
    if (bhi_cgroup_open(&zygote->cgroup, serial, zygote->cgroup_why, sizeof zygote->cgroup_why)) {
        zygote->cgroup = (struct bhi_cgroup){0};
    }
    int pair[2];
    error = bhi_fdpass_pair(pair);
    if (error) {
        return error;
    }
    zygote->socket = above_others(pair[0]);
    BHI_AUTO_FD theirs = pair[1];
    /* A zygote that does not read must not block this thread: a message that cannot be sent is an
     * error. */
    int flags = fcntl(zygote->socket, F_GETFL);
    if (flags < 0 || fcntl(zygote->socket, F_SETFL, flags | O_NONBLOCK) != 0) {
        return -errno;
    }
    BHI_AUTO_FD program = open(context->settings.worker_path, O_PATH | O_CLOEXEC);
    if (program < 0) {
        error = -errno;
        (void)bhi_zygote_lacks_program(zygote, true, -error);
        return error;
    }
    pid_t pid;
    zygote->warden_pidfd = bhi_spawn(context->settings.warden_path, "warden", theirs, &pid);
    bhi_fd_close(&theirs);
    if (zygote->warden_pidfd < 0) {
        error = bhi_fd_steal(&zygote->warden_pidfd);
        (void)bhi_zygote_lacks_program(zygote, false, -error);
        return error;
    }
    /* The warden's end is watched first: whatever fails later, the zygote is buried once its warden
     * is gone. */
    error = bhi_poller_watch(&context->poller, zygote->warden_pidfd, &zygote->warden_source);
    if (error) {
        bhi_spawn_kill(zygote->warden_pidfd); /* `start` was not sent yet */
        zygote->warden_pidfd = -1;
        return error;
    }
    if ((error = send_start(zygote, program)) != 0) {
        return error;
    }
    error = bhi_poller_watch(&context->poller, zygote->socket, &zygote->socket_source);
    sweep(zygote);
    return error;
}

struct bhi_zygote *bhi_zygote_start(bh_context *context, const char *driver) {
    struct bhi_zygote *zygote = calloc(1, sizeof *zygote);
    if (!zygote) {
        return NULL;
    }
    atomic_init(&zygote->refs, 1);
    zygote->context = context;
    bhi_context_retain(context);
    zygote->socket = zygote->pidfd = zygote->warden_pidfd = zygote->proc = zygote->runtime_lock =
        -1;
    snprintf(zygote->requested, sizeof zygote->requested, "%s", driver);
    bhi_list_init(&zygote->link);
    bhi_list_init(&zygote->sentinels);
    zygote->socket_source = (struct bhi_control_source){BHI_SOURCE_ZYGOTE_SOCKET, zygote};
    zygote->pidfd_source = (struct bhi_control_source){BHI_SOURCE_ZYGOTE_PIDFD, zygote};
    zygote->warden_source = (struct bhi_control_source){BHI_SOURCE_WARDEN_PIDFD, zygote};
    zygote->start_deadline_ns = bhi_deadline_ns(START_TIMEOUT_NS);
    int error = 0;
    if (bhi_room_check("starting the driver's process", "it", BHI_ROOM_ZYGOTE + BHI_ROOM_WORKER,
                       &zygote->failure) != BH_OK) {
        zygote->state = BHI_ZYGOTE_LOST;
    } else if ((error = launch(zygote)) != 0) {
        if (!zygote->no_program) {
            BHI_FAIL(&zygote->failure, "", BH_REASON_START, context->settings.warden_path,
                     .sys_errno = -error);
        }
        zygote->mute = error == -EPIPE || error == -ECONNRESET;
        zygote->state = BHI_ZYGOTE_LOST;
    }
    bhi_context_lock(context);
    bhi_list_append(&context->zygotes, &zygote->link);
    bhi_context_unlock(context);
    return zygote;
}

void bhi_zygote_kill(struct bhi_zygote *zygote) {
    if (zygote->pidfd >= 0) {
        pidfd_send_signal(zygote->pidfd, SIGKILL, NULL, 0);
    } else if (zygote->socket >= 0) {
        shutdown(zygote->socket, SHUT_RDWR);
    }
}

void bhi_zygote_remove_cgroup(struct bhi_zygote *zygote, uint64_t worker) {
    if (!zygote->cgroup.version || bhi_cgroup_remove(&zygote->cgroup, worker) == 0) {
        return;
    }
    /* If out of memory, the group is removed later, with that of the zygote. */
    if (BHI_ARRAY_RESERVE(zygote->leftovers, zygote->leftover_capacity,
                          zygote->leftover_count + 1)) {
        zygote->leftovers[zygote->leftover_count++] = worker;
    }
}

bool bhi_zygote_sweep(struct bhi_zygote *zygote) {
    size_t kept = 0;
    for (size_t i = 0; i < zygote->leftover_count; i++) {
        if (bhi_cgroup_remove(&zygote->cgroup, zygote->leftovers[i]) == -EBUSY) {
            zygote->leftovers[kept++] = zygote->leftovers[i];
        }
    }
    zygote->leftover_count = kept;
    return kept > 0;
}

void bhi_zygote_bury(struct bhi_zygote *zygote) {
    if (zygote->warden_pidfd >= 0) {
        bhi_spawn_reap(zygote->warden_pidfd);
    }
    /* If the host is a subreaper or pid 1, the zygote is the host's child once the warden is gone.
     */
    if (zygote->pidfd >= 0) {
        bhi_spawn_reap(zygote->pidfd);
    }
    if (zygote->cgroup.version) {
        bhi_cgroup_close(&zygote->cgroup);
    }
    remove_runtime_dir(zygote);
}
