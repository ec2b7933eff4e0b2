#include "supervisor/reactor/doorbell.h"
#include "base/step_point.h"
#include "supervisor/context/pump.h"
#include "supervisor/event/harvest.h"

#include <sys/epoll.h>

#define LISTENING (EPOLLIN | EPOLLET)

int bhi_doorbell_watch(struct bhi_worker *worker) {
    return bhi_poller_control(&worker->context->poller, EPOLL_CTL_ADD, worker->doorbell, LISTENING,
                              &worker->doorbell_source);
}

static void listen_for(struct bhi_worker *worker, uint32_t events) {
    (void)bhi_poller_control(&worker->context->poller, EPOLL_CTL_MOD, worker->doorbell, events,
                             &worker->doorbell_source);
}

void bhi_doorbell_rung(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    BHI_STEP_POINT("doorbell", worker);
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

uint64_t bhi_doorbell_look(struct bhi_worker *worker, uint64_t now_ns) {
    if (!worker->conduct.muted_until_ns || worker->core.kill != BHI_KILL_NONE) {
        return BH_FOREVER;
    }
    if (worker->conduct.muted_until_ns > now_ns) {
        return worker->conduct.muted_until_ns;
    }
    bhi_conduct_unmute(&worker->conduct);
    listen_for(worker, LISTENING); /* reports rings since the last look */
    return BH_FOREVER;
}
