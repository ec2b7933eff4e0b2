#include "supervisor/reactor/watch.h"
#include "base/fd.h"
#include "supervisor/context/context.h"
#include "supervisor/event/harvest.h"
#include "supervisor/reactor/lessons.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/proc_status.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define LISTENING (EPOLLIN | EPOLLET)

int bhi_watch_doorbell(struct bhi_worker *worker) {
    return bhi_poller_control(&worker->context->poller, EPOLL_CTL_ADD, worker->doorbell, LISTENING,
                              &worker->doorbell_source);
}

static void listen_for(struct bhi_worker *worker, uint32_t events) {
    (void)bhi_poller_control(&worker->context->poller, EPOLL_CTL_MOD, worker->doorbell, events,
                             &worker->doorbell_source);
}

void bhi_watch_rung(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    bhi_context_lock(context);
    bhi_worker_harvest(worker);
    const enum bhi_conduct_verdict verdict =
        bhi_conduct_ring(&worker->conduct, bhi_now_ns(), worker->core.harvested);
    if (verdict == BHI_CONDUCT_KILL) {
        bhi_core_worker_violation(&worker->core, "it rang its doorbell far too often");
    }
    bhi_context_pump_unlock(context);
    if (verdict == BHI_CONDUCT_FINE) {
        return;
    }
    listen_for(worker, 0);
    if (verdict == BHI_CONDUCT_FIRST) {
        bhi_context_log(context, BH_LOG_WARNING,
                        "worker %d rings its doorbell without cause: it is ignored for a while",
                        worker->core.pid);
    }
}

/* Listens to the doorbell again when the time has come. */
static uint64_t look_at_doorbell(struct bhi_worker *worker, uint64_t now_ns) {
    if (!worker->conduct.muted_until_ns || worker->core.life.kill != BHI_KILL_NONE) {
        return BH_FOREVER;
    }
    if (worker->conduct.muted_until_ns > now_ns) {
        return worker->conduct.muted_until_ns;
    }
    bhi_conduct_unmute(&worker->conduct);
    listen_for(worker, LISTENING); /* reports rings since the last look */
    return BH_FOREVER;
}

void bhi_watch_side_channel(struct bhi_worker *worker) {
    if (!worker->hands_out) {
        worker->hands_out = true;
        /* If this fails, the worker's death is noticed only when its device has released it. */
        (void)bhi_poller_control(&worker->context->poller, EPOLL_CTL_ADD, worker->fdpass,
                                 EPOLLIN | EPOLLET, &worker->fdpass_source);
    }
}

bool bhi_watch_side_channel_event(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    char byte;
    bool ended = false;
    bhi_context_lock(context);
    if (worker->fdpass >= 0) {
        if (worker->core.life.kill == BHI_KILL_NONE) {
            bhi_worker_harvest(worker); /* takes the answers that have come */
        }
        const ssize_t length = recv(worker->fdpass, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        const bool unasked = length > 0 && bhi_list_empty(&worker->makes);
        if (unasked && worker->core.life.kill == BHI_KILL_NONE) {
            bhi_core_worker_violation(&worker->core,
                                      "it sent a descriptor that nobody had asked for");
        }
        ended = length == 0 || (length < 0 && errno != EAGAIN);
    }
    bhi_context_pump_unlock(context);
    return ended;
}

void bhi_watch_side_channel_end(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    if (!worker->hands_out || worker->fdpass < 0) {
        return;
    }
    bhi_poller_unwatch(&context->poller, worker->fdpass);
    bhi_context_lock(context);
    bhi_worker_harvest(worker);
    int fd = bhi_fd_steal(&worker->fdpass);
    bhi_context_pump_unlock(context);
    bhi_fd_close(&fd); /* and with it what waits there */
}

/* Kills a worker that uses the processor while nothing is in flight (T5). */
static void look_at_conduct(struct bhi_worker *worker, uint64_t now_ns) {
    struct bhi_core_worker *core = &worker->core;
    const bool idle =
        bhi_worker_served(worker) && core->harvested == core->published && !worker->lessons.kernel;
    uint64_t used_ns, time_ns;
    if (!bhi_life_is_alive(&core->life) ||
        bhi_conduct_look(&worker->conduct, now_ns, core->published, idle,
                         bhi_proc_cpu_ns(core->pid), &used_ns, &time_ns) != BHI_CONDUCT_KILL) {
        return;
    }
    char what[128];
    snprintf(what, sizeof what, "it used %.1f s of processor time in %.1f s with nothing in flight",
             (double)used_ns / 1e9, (double)time_ns / 1e9);
    bhi_core_worker_violation(core, what);
}

/* Ends a worker whose stream has had no work for a while. No event reports that its last work has
 * ended, so a worker that works is checked as often. */
static uint64_t look_at_idle(struct bhi_worker *worker, uint64_t now_ns) {
    struct bhi_core_worker *core = &worker->core;
    const uint64_t idle_ns = worker->context->settings.worker_idle_ns;
    if (!idle_ns || worker->kind != BHI_WORKER_DEVICE || !core->stream ||
        core->life.kill != BHI_KILL_NONE) {
        return BH_FOREVER;
    }
    const bool works = core->harvested != core->published || !bhi_list_empty(&core->stream->queue);
    if (works || worker->idle_published != core->published || !worker->idle_since_ns) {
        worker->idle_published = core->published;
        worker->idle_since_ns = now_ns;
    }
    const uint64_t due_ns = worker->idle_since_ns + idle_ns;
    if (due_ns < idle_ns) {
        return BH_FOREVER;
    }
    if (due_ns > now_ns) {
        return due_ns;
    }
    bhi_core_worker_kill(core, BHI_KILL_RETIRED, 0, "its stream had no work for it");
    return BH_FOREVER;
}

uint64_t bhi_watch_look(struct bhi_worker *worker, bool at_conduct, uint64_t now_ns) {
    if (at_conduct) {
        look_at_conduct(worker, now_ns);
    }
    uint64_t due_ns = look_at_doorbell(worker, now_ns);
    if (bhi_worker_served(worker)) {
        due_ns = bhi_earlier_ns(due_ns, bhi_worker_check_deadline(worker, now_ns));
        due_ns = bhi_earlier_ns(due_ns, bhi_lesson_check_deadline(worker, now_ns));
        due_ns = bhi_earlier_ns(due_ns, look_at_idle(worker, now_ns));
    }
    return worker->messages_left ? 0 : due_ns;
}
