#include "core/stream.h"
#include "base/check.h"
#include "base/detail.h"
#include "base/format.h"
#include "core/worker.h"

/* A host without a free descriptor may soon close some, so a start is tried again. It is not tried
 * for long, because callers wait for their results. */
#define STARVED_RETRY_NS (20ull * 1000000)
#define STARVED_MOST_NS  (400ull * 1000000)
#define STARVED_HEALS_NS (1000ull * 1000000)

void bhi_stream_init(struct bhi_core_stream *stream, struct bhi_core *core, uint32_t budget,
                     uint64_t window_ns) {
    *stream = (struct bhi_core_stream){.core = core, .compile_deadline_ns = BH_FOREVER};
    bhi_list_init(&stream->pump_link);
    bhi_list_init(&stream->sweep_link);
    bhi_list_init(&stream->queue);
    bhi_restart_init(&stream->restart, budget, window_ns, core->ops->now_ns(core));
}

void bhi_stream_fini(struct bhi_core_stream *stream) {
    BHI_CHECK(bhi_list_empty(&stream->queue));
    if (stream->worker) {
        BHI_CHECK(bhi_list_empty(&stream->worker->inflight));
        stream->worker->stream = NULL;
    }
    stream->worker = NULL;
    if (stream->dying) {
        stream->dying->left_by = NULL;
        stream->dying = NULL;
    }
    bhi_list_remove(&stream->pump_link);
    bhi_list_remove(&stream->sweep_link);
    bhi_event_unref(stream->failure);
    stream->failure = NULL;
}

void bhi_stream_wants_pump(struct bhi_core_stream *stream) {
    if (bhi_list_empty(&stream->pump_link)) {
        bhi_list_append(&stream->core->pumpable, &stream->pump_link);
    }
}

void bhi_stream_bind(struct bhi_core_stream *stream, struct bhi_core_worker *worker) {
    BHI_CHECK(stream->state == BHI_STREAM_WANTING && !stream->worker && !worker->stream);
    stream->worker = worker;
    worker->stream = stream;
    worker->bound = true;
    stream->stats.restarts += stream->bereaved;
    stream->bereaved = false;
}

void bhi_stream_bereaved(struct bhi_core_stream *stream) {
    stream->stats.deaths++;
    stream->bereaved = true;
}

void bhi_stream_served(struct bhi_core_stream *stream) {
    struct bhi_core *core = stream->core;
    BHI_CHECK(stream->state == BHI_STREAM_WANTING && stream->worker);
    stream->state = BHI_STREAM_SERVED;
    bhi_restart_served(&stream->restart, core->ops->now_ns(core));
    stream->starved_since_ns = 0;
    stream->trouble = (bh_detail){0};
    core->ops->stream_changed(stream);
    bhi_stream_wants_pump(stream);
}

void bhi_stream_end_queued(struct bhi_core_stream *stream, bh_status status, const char *message) {
    const struct bhi_core_ops *ops = stream->core->ops;
    ops->ref_stream(stream); /* the last one to end may take the stream with it */
    while (!bhi_list_empty(&stream->queue)) {
        bhi_submission_end_unstarted(BHI_CONTAINER(stream->queue.next, struct bhi_submission, link),
                                     status, message, NULL);
    }
    ops->unref_stream(stream);
}

void bhi_stream_unavailable(struct bhi_core_stream *stream, const bh_detail *why, bool heals) {
    struct bhi_core *core = stream->core;
    stream->state = BHI_STREAM_UNAVAILABLE;
    stream->trouble = *why;
    uint64_t heals_at_ns = core->ops->now_ns(core) + stream->restart.window_ns;
    bool never = !heals || heals_at_ns < stream->restart.window_ns;
    stream->heals_at_ns = never ? BH_FOREVER : heals_at_ns;
    core->ops->stream_changed(stream);
    bh_detail trouble = *why; /* |why| may point into the stream, which may be freed */
    core->ops->ref_stream(stream);
    while (!bhi_list_empty(&stream->queue)) {
        bhi_submission_end_unavailable(
            BHI_CONTAINER(stream->queue.next, struct bhi_submission, link), &trouble);
    }
    core->ops->unref_stream(stream);
}

static void want(struct bhi_core_stream *stream) {
    stream->state = BHI_STREAM_WANTING;
    stream->core->ops->stream_changed(stream);
}

void bhi_stream_heal(struct bhi_core_stream *stream) {
    struct bhi_core *core = stream->core;
    if (stream->state != BHI_STREAM_UNAVAILABLE) {
        return;
    }
    uint64_t now_ns = core->ops->now_ns(core);
    if (now_ns < stream->heals_at_ns) {
        return;
    }
    bhi_restart_refill(&stream->restart, now_ns);
    want(stream);
}

bool bhi_stream_reset(struct bhi_core_stream *stream) {
    struct bhi_core *core = stream->core;
    struct bh_event *failure = stream->failure;
    stream->forgiven = core->newest;
    stream->failure = NULL;
    bhi_event_unref(failure);
    bhi_restart_refill(&stream->restart, core->ops->now_ns(core));
    if (stream->state != BHI_STREAM_UNAVAILABLE) {
        return false;
    }
    want(stream);
    return true;
}

static void without_worker(struct bhi_core_stream *stream) {
    stream->state = BHI_STREAM_WANTING;
    stream->worker = NULL;
    stream->core->ops->stream_changed(stream);
}

/* |lead|: before the last death's own message. */
static void give_up(struct bhi_core_stream *stream, const char *lead, const bh_detail *why) {
    bh_detail trouble;
    BHI_FAIL(&trouble, "", why->reason, .status = BH_UNAVAILABLE, .said = lead, .after = why);
    bhi_stream_unavailable(stream, &trouble, true);
}

void bhi_stream_lost_worker(struct bhi_core_stream *stream, bool blamed, const bh_detail *why) {
    struct bhi_core *core = stream->core;
    without_worker(stream);
    bool spent = bhi_restart_lost(&stream->restart, blamed, core->ops->now_ns(core));
    if (!blamed) {
        stream->trouble = *why;
    }
    if (spent) {
        char lead[200];
        bhi_format(lead, sizeof lead,
                   "stream %s: its workers die before they complete anything, and its restart "
                   "budget (%u in %llu s) is spent; the last: ",
                   stream->name, stream->restart.budget,
                   (unsigned long long)(stream->restart.window_ns / 1000000000));
        give_up(stream, lead, why);
    }
}

void bhi_stream_taken_worker(struct bhi_core_stream *stream, const bh_detail *why) {
    struct bhi_core *core = stream->core;
    without_worker(stream);
    stream->trouble = *why;
    if (bhi_restart_taken(&stream->restart, !bhi_list_empty(&stream->queue),
                          core->ops->now_ns(core))) {
        char lead[200];
        bhi_format(lead, sizeof lead,
                   "stream %s: others have ended %llu of its workers in a row before one completed "
                   "anything; the last: ",
                   stream->name, (unsigned long long)stream->restart.taken);
        give_up(stream, lead, why);
    }
}

void bhi_stream_starved(struct bhi_core_stream *stream, const bh_detail *why) {
    struct bhi_core *core = stream->core;
    const uint64_t now_ns = core->ops->now_ns(core);
    stream->trouble = *why;
    if (!stream->starved_since_ns) {
        stream->starved_since_ns = now_ns;
    }
    if (now_ns - stream->starved_since_ns < STARVED_MOST_NS) {
        stream->restart.not_before_ns = now_ns + STARVED_RETRY_NS;
        core->ops->stream_changed(stream);
        return;
    }
    stream->starved_since_ns = 0;
    bhi_stream_unavailable(stream, why, true);
    stream->heals_at_ns = now_ns + STARVED_HEALS_NS;
}

/* Fails every submission of the list that was submitted after |failure|. */
static void fail_later(struct bhi_list *list, const struct bh_event *failure) {
    BHI_LIST_FOR(struct bhi_submission, submission, list, link) {
        if (submission->event->id > failure->id) {
            bhi_submission_fail_strict(submission, failure);
        }
    }
}

/* Newest first: what ends together with a submission was submitted after it, and has been cancelled
 * already. What the library does itself serves others, too. */
static void cancel_all(struct bhi_list *list) {
    for (struct bhi_list *node = list->prev, *before = node->prev; node != list;
         node = before, before = node->prev) {
        struct bhi_submission *submission = BHI_CONTAINER(node, struct bhi_submission, link);
        if (!submission->cancel_requested && !submission->event->library) {
            bhi_submission_cancel(submission);
        }
    }
}

void bhi_stream_cancel(struct bhi_core_stream *stream) {
    const struct bhi_core_ops *ops = stream->core->ops;
    ops->ref_stream(stream); /* the last one to end may take the stream with it */
    cancel_all(&stream->queue);
    if (stream->worker) {
        cancel_all(&stream->worker->inflight);
    }
    ops->unref_stream(stream);
}

void bhi_stream_failed(struct bhi_core_stream *stream, struct bh_event *event) {
    if (event->id <= stream->forgiven || (stream->failure && stream->failure->id <= event->id)) {
        return;
    }
    bhi_event_unref(stream->failure);
    stream->failure = event;
    bhi_event_ref(event);
    if (stream->strict && bhi_list_empty(&stream->sweep_link)) {
        bhi_list_append(&stream->core->sweeps, &stream->sweep_link);
    }
}

void bhi_stream_sweep(struct bhi_core_stream *stream) {
    /* The submissions are only doomed here. They leave the lists when their turn in the ripples
     * comes. */
    BHI_CHECK(stream->core->rippling);
    if (stream->worker) {
        fail_later(&stream->worker->inflight, stream->failure);
    }
    fail_later(&stream->queue, stream->failure);
}

struct bhi_submission *bhi_stream_oldest(const struct bhi_core_stream *stream) {
    const struct bhi_list *lists[] = {stream->worker ? &stream->worker->inflight : NULL,
                                      &stream->queue};
    for (int i = 0; i < 2; i++) {
        if (lists[i] && !bhi_list_empty(lists[i])) {
            return BHI_CONTAINER(lists[i]->next, struct bhi_submission, link);
        }
    }
    return NULL;
}
