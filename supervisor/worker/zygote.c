#include "supervisor/worker/zygote.h"
#include "base/detail.h"
#include "base/futex.h"
#include "base/step_point.h"
#include "ipc/fdpass.h"
#include "supervisor/context/room.h"
#include "supervisor/reactor.h"
#include "supervisor/worker/control.h"
#include "supervisor/worker/directory_lock.h"
#include "supervisor/worker/launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define START_TIMEOUT_NS (20ull * 1000000000)
#define UNWATCHED_NS     (200ull * 1000000) /* for the end of a worker whose pidfd cannot tell */
#define DEAF_START_NS    (200ull * 1000000) /* for a descriptor, while it starts */

void bhi_zygote_retain(struct bhi_zygote *zygote) {
    atomic_fetch_add_explicit(&zygote->refs, 1, memory_order_relaxed);
}

void bhi_zygote_release(struct bhi_zygote *zygote) {
    if (!zygote || atomic_fetch_sub_explicit(&zygote->refs, 1, memory_order_acq_rel) != 1)
        return;
    bh_context *context = zygote->context;
    if (zygote->socket >= 0)
        close(zygote->socket);
    if (zygote->pidfd >= 0)
        close(zygote->pidfd);
    if (zygote->warden_pidfd >= 0)
        close(zygote->warden_pidfd);
    if (zygote->runtime_claim >= 0)
        close(zygote->runtime_claim);
    bhi_trace_fini(&zygote->trace);
    free(zygote->leftovers);
    free(zygote);
    bhi_context_unref(context);
}

/* A folder that only we can enter; its name is random, so that nobody can be there first. */
static int make_runtime_dir(struct bhi_zygote *zygote) {
    int claim = -EEXIST;
    for (int attempt = 0; attempt < 16 && claim == -EEXIST; attempt++) {
        snprintf(zygote->runtime_dir, sizeof zygote->runtime_dir, "%s/bulkhead-%d-%08x",
                 zygote->context->settings.runtime_parent, (int)getpid(), randombytes_random());
        claim = bhi_directory_lock_make(zygote->runtime_dir, 0700);
    }
    if (claim < 0) {
        zygote->runtime_dir[0] = 0;
        return claim;
    }
    zygote->runtime_claim = claim;
    return 0;
}

/* Removes what is directly inside, then the folder. Nothing else is ever put there. */
static void remove_runtime_dir(struct bhi_zygote *zygote) {
    if (!zygote->runtime_dir[0])
        return;
    int fd = zygote->runtime_claim;
    DIR *dir = fdopendir(fd);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(fd, entry->d_name, 0);
    rmdir(zygote->runtime_dir); /* without memory for a look inside: it may be empty */
    zygote->runtime_dir[0] = 0;
    zygote->runtime_claim = -1;
    if (dir)
        closedir(dir);
    else
        close(fd);
}

/* What hosts have left that were killed together with their wardens. Once a context, and while its
 * first zygote loads the driver: the sweep costs the start nothing. */
static void sweep(struct bhi_zygote *zygote) {
    bh_context *context = zygote->context;
    if (context->swept)
        return;
    context->swept = true;
    bhi_directory_lock_sweep_folders(context->settings.runtime_parent);
    char groups[sizeof zygote->cgroup.dir];
    snprintf(groups, sizeof groups, "%s", zygote->cgroup.dir);
    char *slash = strrchr(groups, '/');
    if (zygote->cgroup.version && slash && slash != groups) {
        *slash = 0;
        bhi_directory_lock_sweep_cgroups(groups);
    }
}

static int send_start(struct bhi_zygote *zygote) {
    int self = pidfd_open(getpid(), 0);
    if (self < 0)
        return -errno;
    struct bhi_message message = {.type = BHI_MSG_START};
    message.start.protocol = BHI_WIRE_VERSION;
    snprintf(message.start.driver, sizeof message.start.driver, "%s", zygote->requested);
    snprintf(message.start.runtime_dir, sizeof message.start.runtime_dir, "%s",
             zygote->runtime_dir);
    snprintf(message.start.cgroup_dir, sizeof message.start.cgroup_dir, "%s", zygote->cgroup.dir);
    int error = bhi_fdpass_send_message(zygote->socket, &message, &self, 1);
    close(self);
    return error;
}

static int launch(struct bhi_zygote *zygote) {
    bh_context *context = zygote->context;
    int error = make_runtime_dir(zygote);
    if (error)
        return error;
    /* Without a usable cgroup RLIMIT_DATA serves, and bulkhead doctor says why. */
    uint64_t serial = randombytes_random();
    if (bhi_cgroup_open(&zygote->cgroup, serial, zygote->cgroup_why, sizeof zygote->cgroup_why))
        zygote->cgroup = (struct bhi_cgroup){0};
    int pair[2];
    error = bhi_fdpass_pair(pair);
    if (error)
        return error;
    zygote->socket = pair[0];
    /* A zygote that does not read must not block this thread: what cannot be sent is refused. */
    int flags = fcntl(pair[0], F_GETFL);
    if (flags < 0 || fcntl(pair[0], F_SETFL, flags | O_NONBLOCK) != 0) {
        close(pair[1]);
        return -errno;
    }
    pid_t pid;
    zygote->warden_pidfd = bhi_spawn(context->settings.worker_path, "warden", pair[1], &pid);
    close(pair[1]);
    if (zygote->warden_pidfd < 0) {
        error = zygote->warden_pidfd;
        zygote->warden_pidfd = -1;
        return error;
    }
    BHI_STEP_POINT("warden_started", zygote);
    /* Its end first: whatever fails after this, it is buried once its warden is gone. */
    error = bhi_reactor_watch(context, zygote->warden_pidfd, &zygote->warden_source);
    if (error) {
        bhi_spawn_kill(zygote->warden_pidfd); /* it has not been told anything yet */
        zygote->warden_pidfd = -1;
        return error;
    }
    if ((error = send_start(zygote)) != 0)
        return error;
    BHI_STEP_POINT("zygote_told", zygote);
    error = bhi_reactor_watch(context, zygote->socket, &zygote->socket_source);
    sweep(zygote);
    return error;
}

struct bhi_zygote *bhi_zygote_start(bh_context *context, const char *driver) {
    struct bhi_zygote *zygote = calloc(1, sizeof *zygote);
    if (!zygote)
        return NULL;
    atomic_init(&zygote->refs, 1);
    zygote->context = context;
    bhi_context_retain(context);
    zygote->socket = zygote->pidfd = zygote->warden_pidfd = zygote->runtime_claim = -1;
    snprintf(zygote->requested, sizeof zygote->requested, "%s", driver);
    bhi_list_init(&zygote->link);
    zygote->socket_source = (struct bhi_control_source){BHI_SOURCE_ZYGOTE_SOCKET, zygote};
    zygote->pidfd_source = (struct bhi_control_source){BHI_SOURCE_ZYGOTE_PIDFD, zygote};
    zygote->warden_source = (struct bhi_control_source){BHI_SOURCE_WARDEN_PIDFD, zygote};
    zygote->start_deadline_ns = bhi_deadline_ns(START_TIMEOUT_NS);
    int error = 0;
    if (bhi_room_check("starting a zygote", "it", BHI_ROOM_ZYGOTE + BHI_ROOM_WORKER,
                       &zygote->failure) != BH_OK) {
        zygote->state = BHI_ZYGOTE_LOST;
    } else if ((error = launch(zygote)) != 0) {
        bhi_fail(&zygote->failure, BH_UNAVAILABLE, -error, "starting %s",
                 context->settings.worker_path);
        zygote->state = BHI_ZYGOTE_LOST;
    }
    bhi_context_lock(context);
    bhi_list_append(&context->zygotes, &zygote->link);
    bhi_context_unlock(context);
    return zygote;
}

static struct bhi_worker *find_worker(struct bhi_zygote *zygote, uint64_t id) {
    BHI_LIST_EACH(node, &zygote->context->workers) {
        struct bhi_worker *worker = BHI_CONTAINER(node, struct bhi_worker, link);
        if (worker->id == id && worker->zygote == zygote)
            return worker;
    }
    return NULL;
}

/* A worker was forked: into its cgroup with it before it does anything of note. */
static void spawned(struct bhi_zygote *zygote, struct bhi_worker *worker, int pidfd) {
    bh_context *context = zygote->context;
    pid_t pid = bhi_pidfd_pid(pidfd);
    /* Without its pid it could not be limited, or checked. */
    int error = pid < 0 ? (int)pid : 0;
    if (pid > 0 && worker->memory_limit && zygote->cgroup.version)
        error = bhi_cgroup_enter(&zygote->cgroup, worker->id, pid);
    bhi_context_lock(context);
    worker->pidfd = pidfd;
    worker->core.pid = pid > 0 ? pid : 0;
    BHI_STEP_POINT("spawn_answered", worker);
    if (error && error != -ESRCH)
        bhi_core_worker_kill(&worker->core, BHI_KILL_START, 0, "%s: %s",
                             pid < 0 ? "its pid could not be read"
                                     : "it could not be put into its memory cgroup",
                             strerrorname_np(-error));
    else if (worker->core.kill != BHI_KILL_NONE)
        bhi_core_worker_kill(&worker->core, worker->core.kill, 0, "late");
    bhi_context_unlock(context);
    if ((error = bhi_reactor_watch(context, pidfd, &worker->pidfd_source)) != 0) {
        /* Nobody would notice its end: it ends now, and is buried whether it is reaped or not. */
        bhi_context_lock(context);
        bhi_core_worker_kill(&worker->core, BHI_KILL_START, 0, "its pidfd could not be watched: %s",
                             strerrorname_np(-error));
        worker->reap_deadline_ns = bhi_deadline_ns(UNWATCHED_NS);
        bhi_context_unlock(context);
    }
    bhi_room_hold(&worker->room, pidfd);
    if (worker->ready_said)
        bhi_control_ready(worker);
}

/* False: its end could not be noticed, so it is killed. */
static bool ready(struct bhi_zygote *zygote, const struct bhi_msg_zygote_ready *message,
                  int pidfd) {
    int error = bhi_reactor_watch(zygote->context, pidfd, &zygote->pidfd_source);
    bhi_context_lock(zygote->context);
    zygote->pidfd = pidfd;
    snprintf(zygote->driver, sizeof zygote->driver, "%s", message->driver);
    if (error)
        bhi_fail(&zygote->failure, BH_UNAVAILABLE, -error, "watching the zygote");
    else
        zygote->state = BHI_ZYGOTE_READY;
    bhi_context_unlock(zygote->context);
    zygote->unwatched = error != 0;
    return !error;
}

static bool dispatch(struct bhi_zygote *zygote, const struct bhi_message *message, int *fd) {
    bh_context *context = zygote->context;
    switch (message->type) {
    case BHI_MSG_ZYGOTE_READY:
        if (zygote->state != BHI_ZYGOTE_STARTING)
            return false;
        {
            int pidfd = *fd;
            *fd = -1;
            return ready(zygote, &message->zygote_ready, pidfd);
        }
    case BHI_MSG_ZYGOTE_FAILED: {
        const struct bhi_msg_zygote_failed *failed = &message->zygote_failed;
        bh_status status = (bh_status)failed->status;
        if (bh_status_classify(status) != BH_CLASS_ENVIRON)
            status = BH_UNAVAILABLE;
        bhi_context_lock(context);
        bhi_fail(&zygote->failure, status, 0, "%s", failed->text); /* errno is in its words */
        zygote->failure.sys_errno = failed->error;
        bhi_context_unlock(context);
        return false;
    }
    case BHI_MSG_PROBED: {
        const struct bhi_msg_probed *probed = &message->probed;
        if (probed->layer >= BHI_LAYER_COUNT)
            return false;
        bhi_context_lock(context);
        struct bhi_probe_answer *result = &zygote->probes[probed->layer];
        result->answered = true;
        result->result = probed->result;
        memcpy(result->text, probed->text, sizeof result->text);
        bhi_context_unlock(context);
        atomic_fetch_add(&zygote->probe_word, 1);
        bhi_futex_wake(&zygote->probe_word, false, INT_MAX);
        return true;
    }
    case BHI_MSG_TRACED:
        bhi_context_lock(context);
        bhi_trace_end(zygote, message->traced.done, message->traced.text);
        context->wake_reactor = true; /* an obituary may have waited for it */
        bhi_context_unlock(context);
        return true;
    default:
        break;
    }
    /* The rest is about a worker, which only this thread adds and removes. */
    uint64_t id = message->type == BHI_MSG_SPAWNED        ? message->spawned.worker
                  : message->type == BHI_MSG_SPAWN_FAILED ? message->spawn_failed.worker
                                                          : message->exited.worker;
    bhi_context_lock(context);
    struct bhi_worker *worker = find_worker(zygote, id);
    bhi_context_unlock(context);
    if (!worker)
        return true; /* given up already */
    if (message->type == BHI_MSG_SPAWNED) {
        if (worker->pidfd >= 0)
            return false;
        spawned(zygote, worker, *fd);
        *fd = -1;
        return true;
    }
    bhi_context_lock(context);
    worker->exit_known = true;
    if (message->type == BHI_MSG_EXITED) {
        worker->exit_code_kind = message->exited.code;
        worker->exit_status = message->exited.status;
        /* Of which call? The start is tried once more, traced: it is trusted work. */
        if (worker->exit_status == SIGSYS && worker->exit_code_kind != CLD_EXITED &&
            worker->kind == BHI_WORKER_DEVICE && zygote->trace.state == BHI_TRACE_NONE)
            (void)bhi_trace_begin(zygote, worker->device_index);
    } else {
        worker->exit_code_kind = CLD_EXITED;
        worker->exit_status = 0;
        snprintf(worker->core.kill_text, sizeof worker->core.kill_text,
                 "the zygote could not fork: %s",
                 strerrorname_np(message->spawn_failed.error)
                     ? strerrorname_np(message->spawn_failed.error)
                     : "?");
        worker->core.kill = BHI_KILL_START;
    }
    bhi_context_unlock(context);
    return true;
}

/* The next message brings a descriptor, and there is none to be had: received now it would be lost,
 * and with it the zygote and all that its workers do. For a worker's pidfd there is room that was
 * held for it. */
static bool short_of_descriptors(struct bhi_zygote *zygote) {
    uint8_t bytes[BHI_WIRE_MAX];
    struct bhi_message message;
    ssize_t length = recv(zygote->socket, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    if (length <= 0 ||
        bhi_wire_decode(bytes, (size_t)length, BHI_Z2S, UINT32_MAX, &message, NULL, 0) != 0 ||
        !bhi_message_info((uint32_t)message.type)->fds)
        return false; /* or not a message at all: what receives it says so */
    struct bhi_worker *worker = NULL;
    if (message.type == BHI_MSG_SPAWNED) {
        bhi_context_lock(zygote->context);
        worker = find_worker(zygote, message.spawned.worker);
        bhi_context_unlock(zygote->context);
    }
    if (worker)
        bhi_room_give(&worker->room);
    int free = fcntl(zygote->socket, F_DUPFD_CLOEXEC, 0);
    if (free < 0)
        return errno == EMFILE || errno == ENFILE;
    close(free);
    return false;
}

bool bhi_zygote_listen(struct bhi_zygote *zygote) {
    /* One that starts has nobody's work yet: another is tried, as long as the budget lasts. One
     * that serves is waited for until the worker is overdue. */
    if (zygote->state == BHI_ZYGOTE_STARTING &&
        bhi_now_ns() - zygote->deaf_since_ns >= DEAF_START_NS) {
        bhi_context_lock(zygote->context);
        bhi_fail(&zygote->failure, BH_UNAVAILABLE, EMFILE, "listening to the zygote");
        bhi_context_unlock(zygote->context);
        return false;
    }
    zygote->deaf = bhi_reactor_watch(zygote->context, zygote->socket, &zygote->socket_source) != 0;
    return true;
}

bool bhi_zygote_receive(struct bhi_zygote *zygote) {
    if (short_of_descriptors(zygote)) {
        if (!zygote->deaf_since_ns)
            zygote->deaf_since_ns = bhi_now_ns();
        zygote->deaf = true;
        bhi_reactor_unwatch(zygote->context, zygote->socket);
        return true;
    }
    zygote->deaf_since_ns = 0;
    struct bhi_message message;
    int fds[BHI_FDPASS_MAX];
    char why[256] = "";
    int result = bhi_fdpass_recv_message(zygote->socket, BHI_Z2S, &message, fds, MSG_DONTWAIT, why,
                                         sizeof why);
    if (result == -EAGAIN || result == -EINTR)
        return true;
    if (result <= 0)
        return false;
    int fd = bhi_message_info(message.type)->fds ? fds[0] : -1;
    bool ok = dispatch(zygote, &message, &fd);
    if (fd >= 0)
        close(fd);
    return ok;
}

void bhi_zygote_kill(struct bhi_zygote *zygote) {
    if (zygote->pidfd >= 0)
        pidfd_send_signal(zygote->pidfd, SIGKILL, NULL, 0);
    else if (zygote->socket >= 0)
        shutdown(zygote->socket, SHUT_RDWR);
}

void bhi_zygote_remove_cgroup(struct bhi_zygote *zygote, uint64_t worker) {
    if (!zygote->cgroup.version || bhi_cgroup_remove(&zygote->cgroup, worker) == 0)
        return;
    uint64_t *leftovers =
        realloc(zygote->leftovers, (zygote->leftover_count + 1) * sizeof *leftovers);
    if (!leftovers)
        return; /* it goes with the zygote */
    zygote->leftovers = leftovers;
    leftovers[zygote->leftover_count++] = worker;
}

bool bhi_zygote_sweep(struct bhi_zygote *zygote) {
    size_t kept = 0;
    for (size_t i = 0; i < zygote->leftover_count; i++)
        if (bhi_cgroup_remove(&zygote->cgroup, zygote->leftovers[i]) == -EBUSY)
            zygote->leftovers[kept++] = zygote->leftovers[i];
    zygote->leftover_count = kept;
    return kept > 0;
}

void bhi_zygote_bury(struct bhi_zygote *zygote) {
    if (zygote->warden_pidfd >= 0)
        bhi_spawn_reap(zygote->warden_pidfd);
    /* Where the host is a subreaper, or pid 1, the zygote is its child once the warden is gone. */
    if (zygote->pidfd >= 0)
        bhi_spawn_reap(zygote->pidfd);
    if (zygote->cgroup.version)
        bhi_cgroup_close(&zygote->cgroup);
    remove_runtime_dir(zygote);
}
