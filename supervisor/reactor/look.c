#include "supervisor/reactor/look.h"
#include "base/exiting.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/proc_status.h"

#include <stdio.h>

#define HANG_UP_NS (200ull * 1000000) /* for a worker to end after its sockets have closed */

void bhi_look_at_conduct(struct bhi_worker *worker, uint64_t now_ns) {
    struct bhi_core_worker *core = &worker->core;
    const bool idle = worker->state == BHI_RUNNING && core->harvested == core->published &&
                      !worker->lessons.kernel;
    uint64_t used_ns, time_ns;
    if (core->kill != BHI_KILL_NONE || worker->reap_deadline_ns ||
        bhi_conduct_look(&worker->conduct, now_ns, core->published, idle,
                         bhi_proc_cpu_ns(core->pid), &used_ns, &time_ns) != BHI_CONDUCT_KILL) {
        return;
    }
    char what[128];
    snprintf(what, sizeof what, "it used %.1f s of processor time in %.1f s with nothing in flight",
             (double)used_ns / 1e9, (double)time_ns / 1e9);
    bhi_core_worker_violation(core, what);
}

uint64_t bhi_look_at_idle(struct bhi_worker *worker, uint64_t now_ns) {
    struct bhi_core_worker *core = &worker->core;
    const uint64_t idle_ns = worker->context->settings.worker_idle_ns;
    if (!idle_ns || worker->kind != BHI_WORKER_DEVICE || !core->stream ||
        core->kill != BHI_KILL_NONE) {
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

uint64_t bhi_look_at_hung_up(struct bhi_worker *worker, uint64_t now_ns) {
    if (!worker->hung_up_ns || worker->reap_deadline_ns || worker->core.kill != BHI_KILL_NONE) {
        return BH_FOREVER;
    }
    /* A dying worker closes its sockets first. A worker that lives on without them gets no more
     * messages, and its submissions could wait for one for ever. */
    if (worker->hung_up_ns + HANG_UP_NS > now_ns) {
        return worker->hung_up_ns + HANG_UP_NS;
    }
    if (bhi_is_exiting(&worker->place)) { /* a GPU's driver delays its end */
        worker->hung_up_ns = now_ns;
        worker->exiting = true;
        return now_ns + HANG_UP_NS;
    }
    bhi_core_worker_kill(&worker->core, BHI_KILL_PROTOCOL, 0, "it has closed its sockets");
    return BH_FOREVER;
}
