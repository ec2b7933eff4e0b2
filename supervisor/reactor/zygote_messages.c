#include "supervisor/reactor/zygote_messages.h"
#include "base/detail.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/limits.h"
#include "ipc/fdpass.h"
#include "ipc/refusal.h"
#include "supervisor/context/context.h"
#include "supervisor/reactor/control.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_FDS      2                  /* that come with a message of the zygote */
#define DEAF_START_NS (200ull * 1000000) /* for a descriptor, while the zygote starts */

/* Of an errno that the zygote reports. */
static const char *name_of(int error) {
    const char *name = strerrorname_np(error);
    return name ? name : "?";
}

static struct bhi_worker *find_worker(struct bhi_zygote *zygote, uint64_t id) {
    BHI_LIST_FOR(struct bhi_worker, worker, &zygote->context->workers, link) {
        if (worker->id == id && worker->zygote == zygote) {
            return worker;
        }
    }
    return NULL;
}

/* A worker was forked. It is moved into its cgroup before it does anything. */
static void spawned(struct bhi_zygote *zygote, struct bhi_worker *worker, int pidfd, bool held) {
    bh_context *context = zygote->context;
    bhi_room_give(&worker->room); /* for looks at /proc */
    pid_t pid = bhi_pidfd_pid(pidfd);
    /* Without its pid the worker can be neither limited nor checked. */
    int error = pid < 0 ? (int)pid : 0;
    if (pid > 0 && worker->memory_limit && zygote->cgroup.version) {
        error = bhi_cgroup_enter(&zygote->cgroup, worker->id, pid);
    }
    bhi_context_lock(context);
    worker->pidfd = pidfd;
    worker->core.pid = pid > 0 ? pid : 0;
    const enum bhi_life_act act = bhi_life_born(&worker->core.life, held, bhi_now_ns());
    const bool inside = zygote->proc_error == 0;
    worker->place = (struct bhi_proc_place){zygote->proc, inside, bhi_pidfd_pid_in(pidfd, inside)};
    if (error && error != -ESRCH) {
        bhi_core_worker_kill(&worker->core, BHI_KILL_START, 0, "%s: %s",
                             pid < 0 ? "its pid could not be read"
                                     : "it could not be put into its memory cgroup",
                             strerrorname_np(-error));
    } else if (act == BHI_DO_KILL) {
        context->core.ops->kill(&worker->core);
    }
    bhi_context_pump_unlock(context);
    if ((error = bhi_poller_watch(&context->poller, pidfd, &worker->pidfd_source)) != 0) {
        /* Its end would go unnoticed. So it is killed now, and buried soon, whether or not it has
         * been reaped. */
        bhi_context_lock(context);
        bhi_core_worker_kill(&worker->core, BHI_KILL_START, 0, "its pidfd could not be watched: %s",
                             strerrorname_np(-error));
        (void)bhi_life_step(&worker->core.life, BHI_LIFE_UNWATCHED, bhi_now_ns());
        bhi_context_pump_unlock(context);
    }
    bhi_room_hold(&worker->room, pidfd);
    if (worker->ready_logged) {
        bhi_control_ready(worker);
    }
}

/* Returns false if the zygote's pidfd cannot be watched: then the zygote is lost. */
static bool ready(struct bhi_zygote *zygote, const struct bhi_msg_zygote_ready *message, int pidfd,
                  int proc) {
    int error = bhi_poller_watch(&zygote->context->poller, pidfd, &zygote->pidfd_source);
    zygote->proc = proc;
    zygote->proc_error = (int)message->proc_error;
    bhi_context_lock(zygote->context);
    zygote->pidfd = pidfd;
    snprintf(zygote->driver, sizeof zygote->driver, "%s", message->driver);
    if (error) {
        BHI_FAIL(&zygote->failure, "", BH_REASON_UNREACHABLE, "the driver's process (zygote)",
                 .sys_errno = -error, .text = "cannot be watched");
    } else {
        zygote->state = BHI_ZYGOTE_READY;
        zygote->context->has_had_zygote = true;
    }
    bhi_context_unlock(zygote->context);
    zygote->pidfd_unwatched = error != 0;
    return !error;
}

static void failed(struct bhi_zygote *zygote, const struct bhi_msg_zygote_failed *failed) {
    const bool known = bh_status_classify((bh_status)failed->status) == BH_STATUS_CLASS_ENVIRON;
    struct bhi_told told = {.reason = failed->reason,
                            .subject = failed->subject,
                            .sys_errno = failed->error,
                            .value = failed->value,
                            .limit = failed->limit};
    struct bhi_why why;
    memcpy(told.name, failed->name, sizeof told.name);
    memcpy(told.text, failed->text, sizeof told.text);
    memcpy(told.advice, failed->advice, sizeof told.advice);
    bhi_context_lock(zygote->context);
    /* The warden says UNAVAILABLE if it cannot execute the program: then |failure| is complete. */
    const bool program =
        failed->status == BH_UNAVAILABLE && bhi_zygote_lacks_program(zygote, true, failed->error);
    if (!program && bhi_told_read(&told, known ? failed->status : BH_UNAVAILABLE, &why)) {
        bhi_fail_why(&zygote->failure, "", &why);
    } else if (!program) {
        BHI_FAIL(&zygote->failure, "", BH_REASON_NONE, .status = BH_UNAVAILABLE,
                 .text = "the driver's process (zygote) gave an impossible reason");
    }
    bhi_context_unlock(zygote->context);
}

static void wake_prober(struct bhi_zygote *zygote) {
    atomic_fetch_add(&zygote->probe_word, 1);
    bhi_futex_wake(&zygote->probe_word, false, INT_MAX);
}

static bool probed(struct bhi_zygote *zygote, const struct bhi_msg_probed *probed) {
    if (probed->layer >= BHI_LAYER_COUNT) {
        return false;
    }
    bhi_context_lock(zygote->context);
    struct bhi_probe_answer *result = &zygote->probes[probed->layer];
    result->answered = true;
    result->result = probed->result;
    memcpy(result->text, probed->text, sizeof result->text);
    bhi_context_unlock(zygote->context);
    wake_prober(zygote);
    return true;
}

static void traced(struct bhi_zygote *zygote, const struct bhi_msg_traced *traced) {
    bhi_context_lock(zygote->context);
    bhi_trace_end(&zygote->trace, traced->done, traced->text);
    zygote->context->wake_reactor = true; /* an obituary may have waited for this */
    bhi_context_pump_unlock(zygote->context);
    wake_prober(zygote);
}

static void exited(struct bhi_zygote *zygote, struct bhi_worker *worker,
                   const struct bhi_msg_exited *exited) {
    bhi_context_lock(zygote->context);
    if (exited->held) {
        bhi_life_ended(&worker->core.life, exited->code, exited->status);
    } else {
        bhi_life_status(&worker->core.life, exited->code, exited->status, bhi_now_ns());
    }
    /* A worker was killed by SIGSYS. The zygote traces a start of the driver, which runs trusted
     * work only, to find the system call. */
    if (bhi_life_signal(&worker->core.life) == SIGSYS && worker->kind == BHI_WORKER_DEVICE &&
        zygote->trace.state == BHI_TRACE_NONE && zygote->state == BHI_ZYGOTE_READY) {
        (void)bhi_trace_begin(&zygote->trace, zygote->socket, worker->device_index);
    }
    bhi_context_unlock(zygote->context);
}

/* The start of |worker| has failed, as if it had exited at once. Lock held. */
static void fail_start(struct bhi_worker *worker, const char *what, int error, const char *limit) {
    bhi_life_unborn(&worker->core.life, bhi_now_ns());
    snprintf(worker->core.life.kill_text, sizeof worker->core.life.kill_text, "%s: %s%s", what,
             name_of(error), limit);
}

static void not_spawned(struct bhi_zygote *zygote, struct bhi_worker *worker, int error) {
    char limit[BHI_LIMIT_TEXT];
    bhi_context_lock(zygote->context);
    if (worker->start_fails) {
        snprintf(limit, sizeof limit, " (injected: %s)", zygote->context->chaos.from);
    }
    fail_start(worker, "the driver's process (zygote) could not fork", error,
               worker->start_fails ? limit : bhi_limit_named(error, limit));
    bhi_context_unlock(zygote->context);
}

void bhi_zygote_give_up(struct bhi_worker *worker) {
    fail_start(worker, "no descriptor was left for the pidfd of the worker", EMFILE, "");
}

/* A worker was forked that bhi_zygote_give_up has given up. */
static void born_late(struct bhi_zygote *zygote, const struct bhi_msg_spawned *spawned, int pidfd) {
    pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
    const struct bhi_message message = {.type = BHI_MSG_RELEASE, .release.worker = spawned->worker};
    if (spawned->held) {
        (void)bhi_fdpass_send_message(zygote->socket, &message, NULL, 0);
    }
}

/* A message about a worker. Only this thread adds and removes workers. */
static bool dispatch_worker(struct bhi_zygote *zygote, const struct bhi_message *message, int *fd) {
    const uint64_t id = message->type == BHI_MSG_SPAWNED        ? message->spawned.worker
                        : message->type == BHI_MSG_SPAWN_FAILED ? message->spawn_failed.worker
                                                                : message->exited.worker;
    bhi_context_lock(zygote->context);
    struct bhi_worker *worker = find_worker(zygote, id);
    const bool given_up = !worker || worker->core.life.state >= BHI_CONFIRMED;
    const bool born = worker && worker->core.life.born;
    bhi_context_unlock(zygote->context);
    if (message->type == BHI_MSG_SPAWNED && given_up) {
        born_late(zygote, &message->spawned, *fd);
        return true;
    }
    if (!worker) {
        return true; /* given up already */
    }
    if (message->type == BHI_MSG_SPAWNED) {
        if (born) {
            return false;
        }
        spawned(zygote, worker, bhi_fd_steal(fd), message->spawned.held != 0);
    } else if (message->type == BHI_MSG_EXITED) {
        exited(zygote, worker, &message->exited);
    } else if (born) {
        return false;
    } else {
        not_spawned(zygote, worker, message->spawn_failed.error);
    }
    return true;
}

/* |fds|: two, of which this takes what it keeps. */
static bool dispatch(struct bhi_zygote *zygote, const struct bhi_message *message, int *fds) {
    switch (message->type) {
    case BHI_MSG_ZYGOTE_READY:
        return zygote->state == BHI_ZYGOTE_STARTING &&
               ready(zygote, &message->zygote_ready, bhi_fd_steal(&fds[0]), bhi_fd_steal(&fds[1]));
    case BHI_MSG_ZYGOTE_FAILED:
        failed(zygote, &message->zygote_failed);
        return false;
    case BHI_MSG_PROBED:
        return probed(zygote, &message->probed);
    case BHI_MSG_TRACED:
        traced(zygote, &message->traced);
        return true;
    default:
        return dispatch_worker(zygote, message, fds);
    }
}

/* Peeks, so that a message whose descriptors have no room here stays in the socket: it is nobody's
 * fault, and lost, it would cost the zygote and all work of its workers. A worker's pidfd has
 * reserved room. Returns as bhi_fdpass_recv_message. */
static int peek(struct bhi_zygote *zygote, struct bhi_message *out, int fds[BHI_FDPASS_MAX]) {
    for (bool again = false;; again = true) {
        const int result = bhi_fdpass_recv_message(zygote->socket, BHI_Z2S, out, fds,
                                                   MSG_DONTWAIT | MSG_PEEK, NULL, 0);
        if (result != -EMFILE || again || out->type != BHI_MSG_SPAWNED) {
            return result;
        }
        bhi_context_lock(zygote->context);
        struct bhi_worker *worker = find_worker(zygote, out->spawned.worker);
        bhi_context_unlock(zygote->context);
        if (worker) {
            bhi_room_give(&worker->room);
        }
    }
}

bool bhi_zygote_listen(struct bhi_zygote *zygote) {
    /* A zygote that is still starting has no work: it is given up soon, and another is tried within
     * the restart budgets. A zygote that serves is kept until a worker is overdue. */
    if (zygote->state == BHI_ZYGOTE_STARTING &&
        bhi_now_ns() - zygote->deaf_since_ns >= DEAF_START_NS) {
        bhi_context_lock(zygote->context);
        BHI_FAIL(&zygote->failure, "", BH_REASON_UNREACHABLE, "the driver's process (zygote)",
                 .sys_errno = EMFILE, .text = "has sent a message for which no descriptor is left");
        bhi_context_unlock(zygote->context);
        return false;
    }
    zygote->socket_ignored =
        bhi_poller_watch(&zygote->context->poller, zygote->socket, &zygote->socket_source) != 0;
    return true;
}

bool bhi_zygote_receive(struct bhi_zygote *zygote) {
    struct bhi_message message;
    int fds[BHI_FDPASS_MAX];
    const int result = peek(zygote, &message, fds);
    if (result == -EMFILE) {
        if (!zygote->deaf_since_ns) {
            zygote->deaf_since_ns = bhi_now_ns();
        }
        zygote->socket_ignored = true;
        bhi_poller_unwatch(&zygote->context->poller, zygote->socket);
        return true;
    }
    zygote->deaf_since_ns = 0;
    if (result == -EAGAIN || result == -EINTR) {
        return true;
    }
    if (result <= 0) {
        return false;
    }
    bhi_fdpass_drop(zygote->socket);
    const bool goes_on = dispatch(zygote, &message, fds);
    for (size_t i = 0; i < MOST_FDS; i++) {
        bhi_fd_close(&fds[i]);
    }
    return goes_on;
}
