#include "supervisor/reactor/reactor.h"
#include "base/check.h"
#include "base/detail.h"
#include "base/futex.h"
#include "ipc/fdpass.h"
#include "supervisor/context/context.h"
#include "supervisor/event/harvest.h"
#include "supervisor/reactor/assignment.h"
#include "supervisor/reactor/burial.h"
#include "supervisor/reactor/control.h"
#include "supervisor/reactor/sentinel.h"
#include "supervisor/reactor/spares.h"
#include "supervisor/reactor/watch.h"
#include "supervisor/reactor/zygote_messages.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/proc_status.h"
#include "supervisor/worker/worker_proc.h"
#include "supervisor/worker/zygote.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EVENTS   64
#define RETRY_NS (2ull * 1000000) /* pause before a full socket is tried again */
/* Time for the warden to end after its zygote, which ends after all its workers. On a busy machine
 * a killed worker ends only when it gets a processor: 5 s are for that, and are half of
 * CLOSE_GRACE_NS. If the warden is killed before it has reaped the zygote, the process that reaps
 * the host's orphans gets the zombie. So a warden that is only waiting for a processor gets the
 * time again, up to WARDEN_TURNS times. */
#define WARDEN_GRACE_NS (5000ull * 1000000)
#define WARDEN_TURNS    6
#define DEAF_NS         (5ull * 1000000) /* between two tries to get a descriptor */
#define SWEEP_NS        (20ull * 1000000)
#define SWEEP_MOST_NS   (2000ull * 1000000)
#define CLOSE_GRACE_NS  (10000ull * 1000000) /* for all processes to end when the context closes */
#define WORDS_NS        (500ull * 1000000) /* for sentinels to set words when the context closes */

struct bhi_reactor {
    pthread_t thread;
    bool stopping;        /* context lock */
    uint64_t close_by_ns; /* reactor thread */
    uint64_t look_ns;     /* reactor thread: the next look at idle workers; 0: there is no worker */
};

static void lose_zygote(struct bhi_zygote *zygote) {
    bh_context *context = zygote->context;
    if (zygote->state == BHI_ZYGOTE_LOST) {
        return;
    }
    bhi_context_lock(context);
    bool was_ready = zygote->state == BHI_ZYGOTE_READY, closed = context->closed;
    zygote->state = BHI_ZYGOTE_LOST;
    context->wake_reactor = true;
    bhi_context_pump_unlock(context);
    zygote->bury_by_ns = bhi_now_ns() + WARDEN_GRACE_NS;
    bhi_poller_unwatch(&context->poller, zygote->socket);
    bhi_zygote_kill(zygote);
    atomic_fetch_add(&zygote->probe_word, 1);
    bhi_futex_wake(&zygote->probe_word, false, 1 << 30);
    if (!was_ready) {
        /* It had no workers yet: the streams that wait for it get the reason. */
        bhi_assignment_zygote_failed(zygote);
    }
    if (!closed) {
        bhi_context_log(context, BH_LOG_WARNING, "zygote %s is lost", zygote->driver);
    }
}

/* -- what epoll reports ------------------------------------------------------------------------ */

static void on_event(bh_context *context, const struct bhi_control_source *source) {
    struct bhi_zygote *zygote = source->object;
    struct bhi_worker *worker = source->object;
    uint64_t count;
    switch (source->kind) {
    case BHI_SOURCE_WAKE: {
        ssize_t ignored = read(context->poller.wake, &count, sizeof count);
        (void)ignored;
        break;
    }
    case BHI_SOURCE_WORKER_PIDFD:
        bhi_burial_exit(worker);
        break;
    case BHI_SOURCE_WORKER_DOORBELL:
        bhi_watch_rung(worker);
        break;
    case BHI_SOURCE_WORKER_FDPASS:
        if (bhi_watch_side_channel_event(worker) && worker->words.state != BHI_WORDS_NONE) {
            bhi_sentinel_hung_up(worker);
        }
        break;
    case BHI_SOURCE_WORKER_CHANNEL:
        bhi_control_woken(worker);
        break;
    case BHI_SOURCE_ZYGOTE_SOCKET:
        if (zygote->state != BHI_ZYGOTE_LOST && !bhi_zygote_receive(zygote)) {
            lose_zygote(zygote);
        }
        break;
    case BHI_SOURCE_ZYGOTE_PIDFD:
        bhi_poller_unwatch(&context->poller, zygote->pidfd);
        zygote->gone = true;
        lose_zygote(zygote);
        break;
    case BHI_SOURCE_WARDEN_PIDFD:
        bhi_poller_unwatch(&context->poller, zygote->warden_pidfd);
        zygote->warden_gone = true;
        /* The warden has ended before the zygote was known. Then the zygote dies with the warden,
         * if it was ever cloned. */
        if (zygote->pidfd < 0 || zygote->pidfd_unwatched) {
            zygote->gone = true;
        }
        lose_zygote(zygote);
        break;
    }
}

/* -- a turn ------------------------------------------------------------------------------------ */

/* Handles deadlines of submissions and of starts, and results that were left to this thread. */
static uint64_t look_at_workers(bh_context *context, uint64_t now_ns) {
    struct bhi_reactor *reactor = context->reactor;
    uint64_t look_again = BH_FOREVER;
    bhi_context_lock(context);
    /* One timer for all workers; no timer if there is no worker to look at. */
    const bool looks = reactor->look_ns && reactor->look_ns <= now_ns;
    if (bhi_list_empty(&context->workers)) {
        reactor->look_ns = 0;
    } else if (looks || !reactor->look_ns) {
        reactor->look_ns = now_ns + bhi_conduct_limits.look_ns;
        context->spares_due = true; /* a quarantine may have ended */
    }
    if (reactor->look_ns) {
        look_again = reactor->look_ns;
    }
    BHI_LIST_FOR(struct bhi_worker, worker, &context->workers, link) {
        look_again = bhi_earlier_ns(look_again, bhi_watch_look(worker, looks, now_ns));
    }
    context->poller.armed_ns = look_again;
    bhi_context_pump_unlock(context);
    return look_again;
}

static uint64_t look_at_channels(bh_context *context) {
    uint64_t look_again = BH_FOREVER;
    /* Only this thread changes the list. */
    BHI_LIST_FOR(struct bhi_worker, worker, &context->workers, link) {
        if (worker->messages_left) {
            bhi_control_receive(worker);
        }
        if (bhi_control_send(worker)) {
            look_again = bhi_now_ns() + RETRY_NS;
        }
    }
    return look_again;
}

/* Returns true if the zygote has not answered a request for a worker in time. If the host could not
 * receive the answer, only that worker is given up: others of the zygote may run. */
static bool is_stuck(bh_context *context, const struct bhi_zygote *zygote, uint64_t now_ns) {
    bool stuck = false;
    bhi_context_lock(context);
    BHI_LIST_FOR(struct bhi_worker, worker, &context->workers, link) {
        const bool overdue =
            worker->zygote == zygote && bhi_life_is_overdue(&worker->core.life, now_ns);
        if (overdue && zygote->deaf_since_ns) {
            bhi_zygote_give_up(worker);
            context->wake_reactor = true;
        }
        stuck = stuck || (overdue && !zygote->deaf_since_ns);
    }
    bhi_context_pump_unlock(context);
    return stuck;
}

static uint64_t look_at_zygotes(bh_context *context, uint64_t now_ns) {
    uint64_t look_again = BH_FOREVER;
    BHI_LIST_FOR_SAFE(struct bhi_zygote, zygote, &context->zygotes, link) {
        if (zygote->sweep_at_ns <= now_ns) {
            /* A group stays as long as it has a process that cannot be ended. It is tried less and
             * less often. */
            uint64_t pause_ns = zygote->sweep_pause_ns ? 2 * zygote->sweep_pause_ns : SWEEP_NS;
            bool left = bhi_zygote_sweep(zygote);
            zygote->sweep_pause_ns = left ? bhi_earlier_ns(pause_ns, SWEEP_MOST_NS) : 0;
            zygote->sweep_at_ns = left ? now_ns + zygote->sweep_pause_ns : 0;
        }
        if (zygote->sweep_at_ns) {
            look_again = bhi_earlier_ns(look_again, zygote->sweep_at_ns);
        }
        if (zygote->socket_ignored && zygote->state != BHI_ZYGOTE_LOST) {
            if (zygote->listen_at_ns <= now_ns) {
                zygote->listen_at_ns = now_ns + DEAF_NS;
                if (!bhi_zygote_listen(zygote)) {
                    lose_zygote(zygote);
                }
            }
            look_again = bhi_earlier_ns(look_again, zygote->listen_at_ns);
        }
        if (zygote->state == BHI_ZYGOTE_LOST && zygote->warden_pidfd >= 0 && !zygote->warden_gone) {
            /* If the start failed, bury_by_ns is 0: there is no zygote that the warden has to
             * reap. */
            if (zygote->bury_by_ns && zygote->bury_by_ns <= now_ns &&
                zygote->bury_turns < WARDEN_TURNS &&
                bhi_proc_is_runnable(bhi_pidfd_pid(zygote->warden_pidfd))) {
                zygote->bury_turns++;
                zygote->bury_by_ns = now_ns + WARDEN_GRACE_NS;
            }
            if (zygote->bury_by_ns <= now_ns) {
                pidfd_send_signal(zygote->warden_pidfd, SIGKILL, NULL, 0);
            } else {
                look_again = bhi_earlier_ns(look_again, zygote->bury_by_ns);
            }
        }
        if (zygote->state == BHI_ZYGOTE_READY && is_stuck(context, zygote, now_ns)) {
            lose_zygote(zygote);
        }
        if (zygote->state != BHI_ZYGOTE_STARTING) {
            continue;
        }
        if (zygote->start_deadline_ns <= now_ns) {
            bhi_context_lock(context);
            char loading[BHI_ZYGOTE_LOADING];
            BHI_FAIL(&zygote->failure, "", BH_REASON_LATE, "the driver's process (zygote)",
                     .status = BH_UNAVAILABLE, .text = bhi_zygote_loading(zygote, loading));
            bhi_context_unlock(context);
            lose_zygote(zygote);
        } else {
            look_again = bhi_earlier_ns(look_again, zygote->start_deadline_ns);
        }
    }
    return look_again;
}

/* Lock held. Kills all workers but those of |kind|. */
static void kill_workers(bh_context *context, enum bhi_worker_kind but) {
    BHI_LIST_FOR(struct bhi_worker, worker, &context->workers, link) {
        if (worker->kind != but) {
            bhi_core_worker_kill(&worker->core, BHI_KILL_RETIRED, 0, "the context was destroyed");
        }
    }
}

/* The context closes: kills all workers but the sentinels. The loop continues until all are
 * buried. */
static void begin_closing(bh_context *context) {
    struct bhi_reactor *reactor = context->reactor;
    if (reactor->close_by_ns) {
        return;
    }
    reactor->close_by_ns = bhi_now_ns() + CLOSE_GRACE_NS;
    bhi_context_lock(context);
    kill_workers(context, BHI_WORKER_SENTINEL);
    bhi_streams_hold(context);
    BHI_LIST_FOR(struct bh_stream, stream, &context->streams, link) {
        bhi_stream_end_queued(&stream->core, BH_CONTEXT_CLOSED,
                              "the context was destroyed before it started");
        bhi_stream_changed(stream); /* wakes threads that wait for a worker: there will be none */
    }
    bhi_streams_let_go(context);
    bhi_context_pump_unlock(context);
}

/* Ends the sentinels and all zygotes once the sentinels have set all words, or WORDS_NS after the
 * close began. Returns when to call it again. */
static uint64_t end_zygotes(bh_context *context) {
    const uint64_t until_ns = context->reactor->close_by_ns - CLOSE_GRACE_NS + WORDS_NS;
    bhi_context_lock(context);
    const bool wait = bhi_now_ns() < until_ns && bhi_sentinel_is_busy(context);
    if (!wait) {
        kill_workers(context, BHI_WORKER_DEVICE);
    }
    bhi_context_pump_unlock(context);
    if (wait) {
        return until_ns;
    }
    BHI_LIST_EACH_SAFE(node, &context->zygotes)
    lose_zygote(BHI_CONTAINER(node, struct bhi_zygote, link));
    return BH_FOREVER;
}

static void *run(void *argument) {
    bh_context *context = argument;
    struct bhi_reactor *reactor = context->reactor;
    for (;;) {
        uint64_t wake_ns = BH_FOREVER;
        bhi_context_lock(context);
        bool stopping = reactor->stopping;
        bhi_context_unlock(context);
        if (stopping) {
            begin_closing(context);
            if (bhi_list_empty(&context->workers) && bhi_list_empty(&context->zygotes)) {
                return NULL;
            }
            wake_ns = reactor->close_by_ns;
            (void)bhi_sentinel_turn(context);
            (void)look_at_channels(context);
            wake_ns = bhi_earlier_ns(wake_ns, end_zygotes(context));
            if (wake_ns <= bhi_now_ns()) {
                bhi_burial_give_up(context);
                return NULL;
            }
        } else {
            if (bhi_leave_turn(context)) {
                /* What the spare needs for its stream goes out before the next one is started. */
                bhi_assignment_serve(context);
                wake_ns = look_at_channels(context);
            }
            wake_ns = bhi_earlier_ns(wake_ns, bhi_sentinel_turn(context));
            wake_ns = bhi_earlier_ns(wake_ns, bhi_assignment_turn(context));
        }
        wake_ns = bhi_earlier_ns(wake_ns, look_at_channels(context));
        wake_ns = bhi_earlier_ns(wake_ns, bhi_burial_turn(context));
        bhi_burial_zygotes(context);
        bhi_context_log_said(context);
        uint64_t now_ns = bhi_now_ns();
        wake_ns = bhi_earlier_ns(wake_ns, look_at_zygotes(context, now_ns));
        wake_ns = bhi_earlier_ns(wake_ns, look_at_workers(context, now_ns));
        if (stopping && bhi_list_empty(&context->workers) && bhi_list_empty(&context->zygotes)) {
            return NULL;
        }

        struct epoll_event events[EVENTS];
        now_ns = bhi_now_ns();
        uint64_t sleep_ns = wake_ns > now_ns ? wake_ns - now_ns : 0;
        struct timespec timeout = {.tv_sec = (time_t)(sleep_ns / 1000000000),
                                   .tv_nsec = (long)(sleep_ns % 1000000000)};
        int count = epoll_pwait2(context->poller.epoll, events, EVENTS,
                                 wake_ns == BH_FOREVER ? NULL : &timeout, NULL);
        for (int i = 0; i < count; i++) {
            on_event(context, events[i].data.ptr);
        }
    }
}

void bhi_reactor_free(bh_context *context) {
    bhi_poller_close(&context->poller, bhi_list_empty(&context->workers));
    free(context->reactor);
    context->reactor = NULL;
}

int bhi_reactor_start(bh_context *context) {
    struct bhi_reactor *reactor = calloc(1, sizeof *reactor);
    if (!reactor) {
        return -ENOMEM;
    }
    context->reactor = reactor;
    int error = bhi_poller_open(&context->poller);
    if (!error) {
        /* The thread inherits the signal mask, so it never handles a signal of the host. */
        sigset_t all, old;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        error = -pthread_create(&reactor->thread, NULL, run, context);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    if (error) {
        bhi_reactor_free(context);
        return error;
    }
    pthread_setname_np(reactor->thread, "bulkhead");
    return 0;
}

void bhi_reactor_stop(bh_context *context) {
    bhi_context_lock(context);
    context->reactor->stopping = true;
    context->wake_reactor = true;
    bhi_context_pump_unlock(context);
    pthread_join(context->reactor->thread, NULL);
    bhi_context_lock(context);
    context->poller.stopped = true;
    bhi_context_unlock(context);
    /* Objects that the caller still holds keep the context, but none of its descriptors. A thread
     * that is about to wake the reactor has only a write to the eventfd left, so this wait is
     * short. */
    while (atomic_load_explicit(&context->waking, memory_order_acquire)) {
        sched_yield();
    }
    bhi_poller_close(&context->poller, true);
}
