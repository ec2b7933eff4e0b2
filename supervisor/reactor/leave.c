#include "supervisor/reactor/leave.h"
#include "base/detail.h"
#include "base/step_point.h"
#include "supervisor/context/pump.h"
#include "supervisor/event/harvest.h"
#include "supervisor/reactor/spares.h"
#include "supervisor/stream/placement.h"
#include "supervisor/stream/stream.h"
#include "supervisor/worker/worker_proc.h"
#include "supervisor/worker/zygote.h"

/* What it completed counts first (E11). A request for device memory is work, too: a worker that was
 * told to clear some may still do so. After the loss of a device nobody knows what that still does.
 * The death of a zygote is judged by the burial. */
static bool may_leave(struct bhi_worker *worker) {
    if (worker->kind != BHI_WORKER_DEVICE || worker->state != BHI_RUNNING ||
        !(worker->exiting || worker->reap_deadline_ns || worker->exit_known)) {
        return false;
    }
    bhi_worker_harvest(worker);
    return bhi_core_worker_may_leave(&worker->core) && bhi_list_empty(&worker->makes) &&
           !worker->reported_loss && worker->zygote->state == BHI_ZYGOTE_READY;
}

static void leave(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    struct bh_stream *stream = bhi_stream_of(worker->core.stream);
    bh_detail why;
    bhi_fail(&why, BH_UNAVAILABLE, 0, "worker %d died while it was idle", worker->core.pid);
    bhi_core_worker_leave(&worker->core, &why);
    bhi_placement_leave(stream);
    bhi_spares_make_way(context, bhi_now_ns());
    bhi_context_say(context, BH_LOG_DEBUG, "stream %s goes on without worker %d, which is dying",
                    stream->core.name, worker->core.pid);
    BHI_STEP_POINT("worker_left", worker);
    bhi_worker_release(worker); /* the stream's reference; the context has another one */
}

bool bhi_leave_turn(bh_context *context) {
    bool any = false;
    bhi_context_lock(context);
    BHI_LIST_EACH(node, &context->workers) {
        struct bhi_worker *worker = BHI_CONTAINER(node, struct bhi_worker, link);
        struct bh_stream *stream = worker->core.stream ? bhi_stream_of(worker->core.stream) : NULL;
        if (!stream) {
            continue;
        }
        bhi_stream_ref(stream); /* a harvest may drop the last submission */
        if (may_leave(worker)) {
            leave(worker);
            any = true;
        }
        bhi_stream_unref_locked(stream);
    }
    bhi_context_pump_unlock(context);
    return any;
}
